"""Pods of conf/kubernetes/pod_template.yaml as processes of this machine: its variables and volumes, its user, its
read-only root.

What a cluster would do is done with namespaces of Linux: each `emptyDir` is a new folder, mounted where the template
says and removed with the pod; `/opt` and the user are those of the image. All pods are on one node: one boot,
one network, one path of the home. Needs root.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import yaml

ROOT = Path(__file__).parents[2]
TEMPLATE = ROOT / "conf" / "kubernetes" / "pod_template.yaml"
OF_EXECUTOR = "WAYBILL_TEST_PODS"
"""Tells the executor of `tests.hosts.pod_executor` its folder."""
Secrets = Mapping[str, Mapping[str, str]]

_POD = """
set -e
user=$1 group=$2 checkout=$3 volumes=$4
shift 4
mount -t tmpfs image /opt
mkdir -p /opt/waybill/conf /opt/airflow/dags
{ cat /etc/passwd; echo "airflow:x:$user:$group::/home/airflow:/bin/bash"; } > /opt/passwd
mount --bind /opt/passwd /etc/passwd
cp "$checkout/dags/replication.py" /opt/airflow/dags/
while read -r folder path; do
    mkdir -p "$path"
    case $checkout/ in "$path"/*)
        mkdir -p "$folder/${checkout#"$path"/}"
        mount --rbind "$checkout" "$folder/${checkout#"$path"/}" ;;
    esac
    mount --rbind "$folder" "$path"
done < "$volumes"
mount -o remount,bind,ro /opt
mount -o remount,bind,ro /
cd /
setpriv --reuid "$user" --regid "$group" --clear-groups --no-new-privs "$@" &
trap 'kill -TERM $!' TERM
code=0
wait $! || code=$?
while kill -0 $! 2>/dev/null; do code=0; wait $! || code=$?; done
exit $code
"""
"""The first process of a pod, as dumb-init in the image: it passes SIGTERM on, and with it all others end."""


def why_not() -> str:
    """Why there can be no pods here; empty when there can."""
    if os.geteuid() != 0:
        return "pods on one machine need root"
    tried = ["unshare", "-m", "-p", "-f", "--mount-proc", "sh", "-c", "mount -t tmpfs x /opt && setpriv --version"]
    try:
        done = subprocess.run(tried, capture_output=True, text=True, timeout=20)
    except FileNotFoundError:
        return "unshare is not installed"
    return done.stderr.strip() if done.returncode else ""


def template() -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(TEMPLATE.read_text())
    return document


def variables(container: Mapping[str, Any], secrets: Secrets) -> dict[str, str]:
    """The environment that the kubelet gives the container, with these Secrets in the cluster."""
    made: dict[str, str] = {}
    for source in container.get("envFrom", ()):
        reference = source["secretRef"]
        assert reference["name"] in secrets or reference.get("optional"), reference
        made |= secrets.get(reference["name"], {})
    for one in container["env"]:
        reference = one.get("valueFrom", {}).get("secretKeyRef")
        made[one["name"]] = secrets[reference["name"]][reference["key"]] if reference else one["value"]
    return made


@dataclass
class Pod:
    """One of them, from its start to its end. `home` is the folder that is mounted as its home."""

    folder: Path
    process: subprocess.Popen[str]
    home: Path

    def terminate(self) -> None:
        """As the kubelet stops it: SIGTERM to its first process."""
        os.kill(first_of(self.process.pid), signal.SIGTERM)

    def lose(self) -> None:
        """All its processes end at once, and its volumes go."""
        os.kill(first_of(self.process.pid), signal.SIGKILL)
        self.process.communicate(timeout=30)
        shutil.rmtree(self.folder)


def first_of(unshare: int) -> int:
    """The first process of the pod that this process has made."""
    return int(Path(f"/proc/{unshare}/task/{unshare}/children").read_text().split()[0])


def volumes(folder: Path, mounts: Mapping[str, str], config_maps: Secrets) -> dict[str, Path]:
    """A folder for each volume of the template, by the path at which it is mounted."""
    found = {}
    for volume in template()["spec"]["volumes"]:
        here = folder / volume["name"]
        here.mkdir(parents=True)
        if "configMap" in volume:
            reference = volume["configMap"]
            assert reference["name"] in config_maps or reference.get("optional"), reference
            for name, text in config_maps.get(reference["name"], {}).items():
                (here / name).write_text(text)
        else:
            assert "emptyDir" in volume, volume
            here.chmod(0o2777)
        found[mounts[volume["name"]]] = here
    return found


def start(
    folder: Path,
    words: list[str],
    secrets: Secrets,
    config_maps: Secrets,
    extra: Mapping[str, str],
    fault: str = "",
    output: int | IO[str] = subprocess.PIPE,
) -> Pod:
    """A pod that runs `python WORDS`. `extra` is of tests alone; `fault` names a step at which it stands still."""
    spec = template()["spec"]
    [container], user = spec["containers"], spec["securityContext"]
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    places = volumes(folder, mounts, config_maps)
    environment = variables(container, secrets)
    home = places[environment["WAYBILL_HOME"]]
    if fault:
        (home / "faults").mkdir()
        (home / "faults" / fault).write_text("stop 0")
        for path in (home / "faults", home / "faults" / fault):
            os.chown(path, user["runAsUser"], user["runAsGroup"])
    listed = folder / "volumes"
    # A path before those below it.
    listed.write_text("".join(f"{here} {path}\n" for path, here in sorted(places.items())))
    of_the_image = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "AIRFLOW_HOME": "/opt/airflow"}
    command = ["unshare", "-m", "-p", "-f", "--mount-proc", "--kill-child", "sh", "-c", _POD, "sh"]
    command += [str(user["runAsUser"]), str(user["runAsGroup"]), str(ROOT), str(listed), sys.executable, *words]
    process = subprocess.Popen(
        command,
        env={**of_the_image, **environment, **extra},
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return Pod(folder, process, home)
