"""Processor time and memory of each part of a running stack: of its process with all that it has started.

Processor time is that of living processes and of the children they have waited for, so the difference of two looks
holds what tasks took that began and ended between them. Memory is the proportional set size (PSS): pages that several
processes share count once in all. Workers of a run are found by the lock files that they share with it. Linux only.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from connect_core import stack

SUPERVISOR = "supervisor"
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_MEGABYTE = 1024 * 1024


@dataclass(frozen=True)
class Usage:
    cpu_s: float
    memory_bytes: int


def usage(running: stack.Stack) -> dict[str, Usage]:
    """Now, by part."""
    roots = {name: part.process.pid for name, part in running.parts.items()}
    if running.supervisor is not None:
        roots[SUPERVISOR] = running.supervisor.pid
    stats = dict(_stats())
    children = defaultdict(list)
    for pid, (parent, _) in stats.items():
        children[parent].append(pid)
    found = {}
    for name, root in roots.items():
        tree = list(_tree(root, children, stop=set(roots.values()) - {root}))
        cpu_s = sum(stats[pid][1] for pid in tree if pid in stats)
        found[name] = Usage(cpu_s, sum(map(_memory_bytes, tree)))
    return found


def shares(before: Mapping[str, Usage], after: Mapping[str, Usage], wall_s: float) -> dict[str, float]:
    """Cores that each part kept busy between two looks, the busiest first; 1 is one core all the time."""
    busy = {name: (after[name].cpu_s - before[name].cpu_s) / wall_s for name in after if name in before}
    return dict(sorted(busy.items(), key=lambda item: -item[1]))


def told_cores(busy: Mapping[str, float]) -> tuple[str, str]:
    """The sum for the table, and what it is made of."""
    parts = ", ".join(f"{name} {share:.0%}" for name, share in busy.items())
    return f"{sum(busy.values()):.0%} of a core", parts


def told_memory(seen: Mapping[str, Usage]) -> tuple[str, str]:
    """The sum for the table, and what it is made of."""
    ordered = sorted(seen.items(), key=lambda item: -item[1].memory_bytes)
    parts = ", ".join(f"{name} {one.memory_bytes // _MEGABYTE}" for name, one in ordered)
    return f"{sum(one.memory_bytes for one in seen.values()) // _MEGABYTE:,} MiB", f"PSS in MiB: {parts}"


def workers(locks: Path, driver: int) -> set[int]:
    """Processes that share a lock file in the folder `locks` with the process `driver`, without itself."""
    folder = f"{locks.resolve()}{os.sep}"
    mine = {path for path in _open_files(driver) if path.startswith(folder)}
    if not mine:
        return set()
    others = (int(entry.name) for entry in Path("/proc").glob("[0-9]*") if int(entry.name) != driver)
    return {pid for pid in others if mine.intersection(_open_files(pid))}


def _open_files(pid: int) -> Iterator[str]:
    try:
        descriptors = os.listdir(f"/proc/{pid}/fd")
    except OSError:  # it has ended, or belongs to somebody else
        return
    for descriptor in descriptors:
        with suppress(OSError):  # closed meanwhile
            yield os.readlink(f"/proc/{pid}/fd/{descriptor}")


def _stats() -> Iterator[tuple[int, tuple[int, float]]]:
    """Parent and processor seconds by process."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        yield int(entry.name), (int(fields[1]), sum(map(int, fields[11:15])) * _TICK_S)


def _tree(root: int, children: Mapping[int, Sequence[int]], stop: set[int]) -> Iterator[int]:
    """`stop` are the roots of other parts: the supervisor is the parent of those that it has started again."""
    yield root
    for child in children.get(root, ()):
        if child not in stop:
            yield from _tree(child, children, stop)


def _memory_bytes(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)
