"""Hosts on one machine: Linux namespaces, each with a network, processes, a name, a boot id and a CLOCK_BOOTTIME.

    with Network() as network:
        there = network.host("there", ahead_s=86_400)
        process = there.start([sys.executable, "-c", "…"])
        there.cut()
        there.heal()

The machine itself is the host of all servers; its address in the network is `network.address`. Servers of tests listen
on its loopback interface, under whose address clients look for them: with `network.serve` that address leads there,
over the link. Files are shared, as far as nothing is mounted. Needs root: links between namespaces of two owners take
it.

Sources: unshare(1) (`--time`, `--boottime`), time_namespaces(7), veth(4), ip-link(8), ip-rule(8), and route_localnet in
the kernel's ip-sysctl.rst. Timers with an absolute moment are of the namespace's own clock.
"""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import IO

from tests.hosts import long_way

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
_LINK = """
set -e
ip addr add "$1/24" dev eth0
ip link set eth0 up
echo 1 > /proc/sys/net/ipv4/conf/eth0/route_localnet
ip route add default via "$2" dev eth0 table 100
ip rule add pref 5 lookup local
ip rule del pref 0
"""
_SERVE = 'for port; do ip rule add pref 1 to 127.0.0.1 ipproto tcp dport "$port" lookup 100 || exit; done'
"""On a host: what goes to these ports of the loopback address leaves it, by table 100."""

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
    way: subprocess.Popen[str] | None = None
    """What carries its frames, where that can take long."""
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

    def far(self, *, takes_ms: int, varies_ms: int = 0, loses_per_mille: int = 0) -> None:
        """How its frames travel from now on, each way."""
        assert self.way is not None
        assert self.way.stdin is not None
        self.way.stdin.write(f"{takes_ms} {varies_ms} {loses_per_mille}\n")
        self.way.stdin.flush()

    def lose(self) -> None:
        """The power fails: all its processes end at once."""
        os.kill(self.pid, signal.SIGKILL)
        for process in self.started:  # the host ends when nsenter has taken notice of the end of what it started
            process.send_signal(signal.SIGCONT)
        for process in (self.first, *self.started):
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
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._signal(signal.SIGCONT)
        for process in self.started:  # nsenter stops with the process that it has started
            process.send_signal(signal.SIGCONT)

    def _signal(self, sign: signal.Signals) -> None:
        for pid in self.processes():
            with suppress(ProcessLookupError):  # it has ended meanwhile
                os.kill(pid, sign)


def _inside(host: Host, script: str, *words: str) -> None:
    entering = ["nsenter", "-t", str(host.pid), "-n", "-m", "sh", "-c", script, "sh", *words]
    subprocess.run(entering, check=True, capture_output=True, timeout=_READY_LIMIT_S)


def _carried(host: Host, seed: str) -> subprocess.Popen[str]:
    command = [sys.executable, long_way.__file__, host.link, str(host.pid), seed]
    pipe = subprocess.PIPE
    way = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT, text=True)
    assert way.stdout is not None
    said = way.stdout.readline()
    assert said == "ready\n", said + way.stdout.read()
    return way


class Network:
    """A bridge, and whatever hosts are linked to it. Leaving the context ends them."""

    def __init__(self) -> None:
        number = next(_networks)
        # For tests of networks (RFC 2544): nobody else's way leads there. Processes of one session have nets apart.
        process = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
        self._net = f"198.{18 + os.getppid() % 2}.{process % 10 * 25 + number % 25}"
        self._bridge = f"wb{os.getpid() % 1_000_000}n{number % 1000}"
        self._folder = TemporaryDirectory(prefix="waybill-hosts-")
        self.hosts: list[Host] = []

    @property
    def address(self) -> str:
        """Of this machine."""
        return f"{self._net}.1"

    def host(self, name: str, ahead_s: int, *, long_way: str | None = None) -> Host:
        """A new one, whose CLOCK_BOOTTIME is so much ahead of the machine's; behind it where that is negative. With a
        seed in `long_way` its frames may take long, and get lost: see `Host.far`."""
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
        if long_way is not None:
            made.way = _carried(made, long_way)
        self._link(made)
        return made

    def _link(self, host: Host) -> None:
        if host.way is None:
            _ip("link", "add", host.link, "type", "veth", "peer", "name", "eth0", "netns", str(host.pid))
        _ip("link", "set", host.link, "master", self._bridge, "up")
        _inside(host, _LINK, host.address, self.address)

    def serve(self, host: Host, *ports: int) -> None:
        """What listens at these ports of this machine's loopback address is reached on the host at the same address."""
        _inside(host, _SERVE, *map(str, ports))

    def __enter__(self) -> Network:
        _ip("link", "add", self._bridge, "type", "bridge")
        _ip("addr", "add", f"{self.address}/24", "dev", self._bridge)
        _ip("link", "set", self._bridge, "up")
        Path(f"/proc/sys/net/ipv4/conf/{self._bridge}/route_localnet").write_text("1")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for host in self.hosts:
            if host.first.poll() is None:
                host.lose()
            for process in (host.first, *([host.way] if host.way else [])):
                for stream in (process.stdin, process.stdout):
                    if stream is not None:
                        stream.close()
                process.wait(_READY_LIMIT_S)
        links = [host.link for host in self.hosts]  # the kernel takes them away with their host, but not at once
        for link in (*links, self._bridge):
            subprocess.run(["ip", "link", "del", link], capture_output=True, timeout=_READY_LIMIT_S)
        self._folder.cleanup()
