"""Makes the archives of classes that servers in Java start with: `python -m connect_core.stack.archiving`.

Broker, engine and HiveMQ are started once in a home of their own; at its end their JVM writes down which classes it has
loaded. Where that fails nothing is lost: servers start without. An archive appears under its final name by one rename,
when a JVM has started with it: one that is cut off would crash whoever uses it.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from connect_core.errors import Unreachable
from connect_core.stack import archives, jars, java, lifecycle, mqtt_broker, ports, processes, spark_server
from connect_core.stack.locking import locked
from connect_core.stack.parts import BROKER, ENGINE, MQTT_BROKER, NAME_SERVER, RUNNING, Options, Site
from connect_core.stack.processes import Launch, Process

_READY_S = 120.0
_END_S = 90.0
"""A broker's own shutdown takes up to 17 s; then the archive is written."""
_TRIAL_S = 60.0


def engine(home: Path, *jvm: str) -> tuple[str, ...]:
    """Starts and ends an engine with these arguments for its JVM; the command line of that JVM."""
    return _run(home, ENGINE, Options(well_known_ports=False, engine_jvm=jvm))


def broker(home: Path, *jvm: str) -> tuple[str, ...]:
    """The same with a broker. Its archive serves the name server too, which loads little else."""
    return _run(home, BROKER, Options(well_known_ports=False, rocketmq_jvm=jvm), beside=NAME_SERVER)


def hivemq(home: Path, *jvm: str) -> tuple[str, ...]:
    """The same with HiveMQ CE, which the stack takes only where there is no Mosquitto."""
    site = Site(home, {"mqtt": ports.free()}, {}, Options())
    (home / "mqtt").mkdir(parents=True)
    mqtt_broker.prepare_hivemq(home / "mqtt", site.ports["mqtt"])
    program, *words = mqtt_broker.hivemq_command(home / "mqtt")
    process = processes.start(Launch((program, *jvm, *words), dict(os.environ), site.log(MQTT_BROKER)))
    try:
        if not processes.wait_until(lambda: mqtt_broker.MqttBroker().condition(site) == RUNNING, _READY_S):
            raise Unreachable("HiveMQ CE did not answer", where=str(site.log(MQTT_BROKER)))
        return _command_line(process)
    finally:
        processes.stop(process, grace_s=_END_S)


def make(folder: Path, run: Callable[..., tuple[str, ...]], report: jars.Report) -> None:
    """Makes the archive of a folder of jars, when there is none that is current, with what loads them."""
    archive, program = archives.of(folder), java.find(jars.cache_folder())
    with locked(archive.with_suffix(".jsa.lock")):
        if archives.is_current(folder, program):
            return
        if not _has_its_own(program):
            report(f"{program} has no archive of its own classes to begin with: servers start without")
            return
        report(f"Making {archive}: servers start with it in half the time")
        archive.unlink(missing_ok=True)
        with tempfile.TemporaryDirectory(prefix=f"{archive.name}.", dir=folder.parent) as place:
            fresh = Path(place) / archive.name
            command = run(Path(place) / ".waybill", f"-XX:ArchiveClassesAtExit={fresh}")
            if _serves(fresh, command):
                fresh.rename(archive)
            else:
                report(f"Java {command[0]} made no archive of {folder}: servers start without")


def _run(home: Path, part: str, options: Options, beside: str = "") -> tuple[str, ...]:
    parts = [name for name in (beside, part) if name]
    try:
        process = lifecycle.up(home, parts=parts, supervise=False, options=options).part(part).process
        words = _command_line(process)
        if beside:  # it would write one too
            lifecycle.kill(home, beside)
        processes.stop(process, grace_s=_END_S)
        return words
    finally:
        lifecycle.down(home)


def _has_its_own(program: Path) -> bool:
    """A Java that was put together for one purpose may have none; then it makes none of others."""
    trial = [str(program), "-Xshare:on", "-version"]
    return subprocess.run(trial, capture_output=True, timeout=_TRIAL_S).returncode == 0


def _command_line(process: Process) -> tuple[str, ...]:
    return tuple(Path(f"/proc/{process.pid}/cmdline").read_text().split("\0"))


def _serves(archive: Path, command: tuple[str, ...]) -> bool:
    """Whether a JVM with the class path of this command starts with the archive."""
    java_program, class_path = command[0], command[command.index("-cp") + 1]
    words = [java_program, "-XX:+UseSerialGC", "-Xshare:on", f"-XX:SharedArchiveFile={archive}"]
    trial = [*words, "-cp", class_path, "-version"]
    if not archive.is_file():
        return False
    # It stands beside the archive: a JVM that crashes leaves a file there.
    return subprocess.run(trial, cwd=archive.parent, capture_output=True, timeout=_TRIAL_S).returncode == 0


def main(report: jars.Report = print) -> None:
    """All that this machine has the jars for, side by side."""
    wanted: list[tuple[Path, Callable[..., tuple[str, ...]]]] = [(spark_server.jars(), engine)]
    for version, run in ((jars.VERSION, broker), (mqtt_broker.HIVEMQ, hivemq)):
        if jars.is_cached(version):
            wanted.append((jars.folder_of(version, jars.cache_folder()), run))
    with ThreadPoolExecutor(len(wanted)) as threads:
        for (folder, _), done in [(pair, threads.submit(make, *pair, report)) for pair in wanted]:
            if (error := done.exception()) is not None:
                # Whatever it is: nothing depends on an archive.
                report(f"No archive of {folder}, servers start without: {type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
