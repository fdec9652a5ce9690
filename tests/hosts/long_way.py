"""Carries frames between two network devices late, and loses some: `long_way.py DEVICE PID SEED`.

DEVICE is made in the network of this process, `eth0` in the one of process PID. Each line of the standard input says
how it is from then on: milliseconds that a frame takes, by how many more that varies, and how many of a thousand are
lost. Frames of one direction keep their order. It does what netem(8) does, which not every kernel has.

Sources: the kernel's tuntap.rst; setns(2).
"""

from __future__ import annotations

import ctypes
import fcntl
import heapq
import os
import random
import select
import struct
import sys
import time

_FRAME_BYTES = 65_536
_TUNSETIFF, _IFF_TAP, _IFF_NO_PI = 0x400454CA, 0x0002, 0x1000
_CLONE_NEWNET = 0x40000000


def _device(name: str) -> int:
    """A descriptor that reads and writes the frames of a new device."""
    descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(descriptor, _TUNSETIFF, struct.pack("16sH22x", name.encode(), _IFF_TAP | _IFF_NO_PI))
    return descriptor


def _enter_network_of(pid: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    with open(f"/proc/{pid}/ns/net") as network:
        if libc.setns(network.fileno(), _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")


class Way:
    def __init__(self, ends: tuple[int, int], seed: str) -> None:
        self._to = {ends[0]: ends[1], ends[1]: ends[0]}
        self._chance = random.Random(seed)
        self._takes_s, self._varies_s, self._loses = 0.0, 0.0, 0.0
        self._under_way: list[tuple[float, int, int, bytes]] = []
        self._last = dict.fromkeys(ends, 0.0)
        self._count = 0

    def carry(self) -> None:
        """Until the standard input ends."""
        while True:
            wait_s = max(0.0, self._under_way[0][0] - time.monotonic()) if self._under_way else None
            ready, _, _ = select.select([0, *self._to], [], [], wait_s)
            if 0 in ready:
                if not (line := os.read(0, 1024)):
                    return
                takes_ms, varies_ms, loses = map(int, line.split())
                self._takes_s, self._varies_s, self._loses = takes_ms / 1e3, varies_ms / 1e3, loses / 1e3
            for end in ready:
                if end:
                    self._take(end)
            self._deliver()

    def _take(self, end: int) -> None:
        frame = os.read(end, _FRAME_BYTES)
        if self._chance.random() < self._loses:
            return
        due = time.monotonic() + self._takes_s + self._chance.random() * self._varies_s
        self._last[end] = due = max(due, self._last[end])
        self._count += 1
        heapq.heappush(self._under_way, (due, self._count, self._to[end], frame))

    def _deliver(self) -> None:
        while self._under_way and self._under_way[0][0] <= time.monotonic():
            _, _, end, frame = heapq.heappop(self._under_way)
            try:
                os.write(end, frame)
            except OSError:
                continue  # that device is down: the frame is lost


def main(device: str, pid: str, seed: str) -> None:
    near = _device(device)
    _enter_network_of(int(pid))
    far = _device("eth0")
    print("ready", flush=True)
    Way((near, far), seed).carry()


if __name__ == "__main__":
    main(*sys.argv[1:])
