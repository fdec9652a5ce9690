"""Hosts on one machine: Linux namespaces, each with a network, processes, a name, a boot id and a CLOCK_BOOTTIME.

    with Network() as network:
        there = network.host("there", ahead_s=86_400)
        process = there.start([sys.executable, "-c", "…"])
        there.cut()
        there.heal()

The machine itself is the host of the driver and of all servers; its address in the network is `network.address`. Files
are shared, as far as nothing is mounted. Needs root: links between namespaces of two owners take it.

Sources: unshare(1) (`--time`, `--boottime`), time_namespaces(7), veth(4), ip-link(8). Timers with an absolute moment
are of the namespace's own clock.
"""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import IO

_READY_LIMIT_S = 20
_SCRIPT = """
set -e
hostname "$1"
mount --bind "$2" /proc/sys/kernel/random/boot_id
ip link set lo up
echo ready
exec cat > /dev/null
"""
"""The first process of a host: with it all others end. It ends with its standard input."""

_networks = itertools.count()


def why_not() -> str:
    """Why there can be no hosts here; empty when there can."""
    if os.geteuid() != 0:
        return "hosts on one machine need root"
    links = "ip link add br0 type bridge && ip link add one0 type veth peer name other0 && ip link set one0 master br0"
    tried = ["unshare", "-n", "-m", "-u", "-p", "-f", "-T", "--boottime", "1000", "sh", "-c", links]
    try:
        done = subprocess.run(tried, capture_output=True, text=True, timeout=_READY_LIMIT_S)
    except FileNotFoundError:
        return "unshare is not installed"
    return done.stderr.strip() if done.returncode else ""


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=_READY_LIMIT_S)


@dataclass
class Host:
    """One of them. `boot_id` and the clock are other ones than the machine's: `ahead_s` seconds are between them."""

    name: str
    address: str
    boot_id: str
    ahead_s: int
    link: str
    first: subprocess.Popen[str]
    pid: int
    """Of its first process, as the machine sees it."""
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(
        self, command: Sequence[str], env: Mapping[str, str] | None = None, **streams: int | IO[bytes]
    ) -> subprocess.Popen[bytes]:
        """A process there; it runs as long as the host, unless it ends."""
        entering = ["nsenter", "-t", str(self.pid), "-n", "-m", "-u", "-p", "-T", "--"]
        process = subprocess.Popen([*entering, *command], env=env, **streams)  # type: ignore[call-overload]
        self.started.append(process)
        return process  # type: ignore[no-any-return]

    def cut(self) -> None:
        """Nothing goes in or out any more, and nobody is told."""
        _ip("link", "set", self.link, "down")

    def heal(self) -> None:
        _ip("link", "set", self.link, "up")

    def lose(self) -> None:
        """The power fails: all its processes end at once."""
        os.kill(self.pid, signal.SIGKILL)
        self.first.wait(_READY_LIMIT_S)
        for process in self.started:
            process.wait(_READY_LIMIT_S)

    def processes(self) -> list[int]:
        """What runs there beside its first process, as the machine numbers it."""
        space = os.readlink(f"/proc/{self.pid}/ns/pid")
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != self.pid:
                try:
                    if os.readlink(entry / "ns" / "pid") == space:
                        found.append(int(entry.name))
                except OSError:
                    continue
        return found

    def pause(self) -> None:
        """All its processes stand still. Its clock counts on, as when the machine under it is too busy for it."""
        for pid in self.processes():
            os.kill(pid, signal.SIGSTOP)

    def go_on(self) -> None:
        for pid in self.processes():
            os.kill(pid, signal.SIGCONT)
        for process in self.started:  # nsenter stops with the process that it has started
            process.send_signal(signal.SIGCONT)


class Network:
    """A bridge, and whatever hosts are linked to it. Leaving the context ends them."""

    def __init__(self) -> None:
        # For tests of networks (RFC 2544): nobody else's way leads there.
        self._net = f"198.{18 + os.getpid() % 2}.{(os.getpid() // 2 + next(_networks)) % 250}"
        self._bridge = f"wb{os.getpid() % 1_000_000}n{next(_networks) % 1000}"
        self._folder = TemporaryDirectory(prefix="waybill-hosts-")
        self.hosts: list[Host] = []

    @property
    def address(self) -> str:
        """Of this machine."""
        return f"{self._net}.1"

    def host(self, name: str, ahead_s: int) -> Host:
        """A new one, whose CLOCK_BOOTTIME is so much ahead of the machine's; behind it where that is negative."""
        number = len(self.hosts) + 2
        boot_id = f"{number:08x}-0000-4000-8000-{os.getpid():012x}"
        file = Path(self._folder.name) / name
        file.write_text(boot_id + "\n")
        apart = ["unshare", "-n", "-m", "-u", "-p", "-f", "--mount-proc", "-T", "--boottime", str(ahead_s)]
        first = subprocess.Popen(
            [*apart, "sh", "-c", _SCRIPT, "sh", name, str(file)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert first.stdout is not None
        said = first.stdout.readline()
        assert said == "ready\n", said + first.stdout.read()
        pid = int(Path(f"/proc/{first.pid}/task/{first.pid}/children").read_text().split()[0])
        made = Host(name, f"{self._net}.{number}", boot_id, ahead_s, f"{self._bridge}h{number}", first, pid)
        self.hosts.append(made)
        self._link(made)
        return made

    def _link(self, host: Host) -> None:
        _ip("link", "add", host.link, "type", "veth", "peer", "name", "eth0", "netns", str(host.pid))
        _ip("link", "set", host.link, "master", self._bridge, "up")
        inside = ["nsenter", "-t", str(host.pid), "-n", "ip"]
        for words in (["addr", "add", f"{host.address}/24", "dev", "eth0"], ["link", "set", "eth0", "up"]):
            subprocess.run([*inside, *words], check=True, capture_output=True, timeout=_READY_LIMIT_S)

    def __enter__(self) -> Network:
        _ip("link", "add", self._bridge, "type", "bridge")
        _ip("addr", "add", f"{self.address}/24", "dev", self._bridge)
        _ip("link", "set", self._bridge, "up")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for host in self.hosts:
            if host.first.poll() is None:
                host.lose()
            for stream in (host.first.stdin, host.first.stdout):
                if stream is not None:
                    stream.close()
        links = [host.link for host in self.hosts]  # the kernel takes them away with their host, but not at once
        for link in (*links, self._bridge):
            subprocess.run(["ip", "link", "del", link], capture_output=True, timeout=_READY_LIMIT_S)
        self._folder.cleanup()
