"""Compares the log files with the file at the other end: the same lines, each once, in order within each log.

Reads files and nothing else; holds all lines in memory (a demo's worth).
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from connect_core.demo.feed import host_of


@dataclass(frozen=True)
class Comparison:
    """Lines and SHA-256 over the sorted lines of both sides; `faults` says in sentences what differs."""

    source_lines: int
    target_lines: int
    source_sha256: str
    target_sha256: str
    faults: tuple[str, ...]


def compare(sources: Sequence[Path], target: Path) -> Comparison:
    fed = {path.stem: path.read_bytes().splitlines(keepends=True) for path in sources}
    arrived = target.read_bytes().splitlines(keepends=True)
    by_host: dict[str, list[bytes]] = defaultdict(list)
    for text in arrived:
        by_host[host_of(text)].append(text)
    faults = [fault for host, lines in fed.items() if (fault := _difference(host, lines, by_host[host]))]
    faults += [f"{len(by_host[host])} lines are of no log ({host!r})" for host in by_host.keys() - fed.keys()]
    every = [text for lines in fed.values() for text in lines]
    return Comparison(len(every), len(arrived), _sha256_sorted(every), _sha256_sorted(arrived), tuple(faults))


@dataclass(frozen=True)
class FirstLines:
    """A file that holds the first lines of each log, `lines` in all."""

    lines: int
    faults: tuple[str, ...]


def compare_beginnings(sources: Sequence[Path], target: Path) -> FirstLines:
    """What of `target` is not the beginning of each log, in order; a log may be cut anywhere, and nothing repeated."""
    arrived = target.read_bytes().splitlines(keepends=True)
    by_host: dict[str, list[bytes]] = defaultdict(list)
    for text in arrived:
        by_host[host_of(text)].append(text)
    faults = []
    for path in sources:
        lines = by_host.pop(path.stem, [])
        if not lines or path.read_bytes().splitlines(keepends=True)[: len(lines)] != lines:
            faults.append(f"{target.name}: the {len(lines)} lines of {path.name} are not its first ones")
    faults += [f"{target.name}: {len(lines)} lines are of no log ({host!r})" for host, lines in by_host.items()]
    return FirstLines(len(arrived), tuple(faults))


def _difference(host: str, fed: list[bytes], arrived: list[bytes]) -> str | None:
    """The first thing that is wrong with the lines of one log, or None when they arrived as they are, in order."""
    if arrived == fed:
        return None
    missing, repeated = len(set(fed) - set(arrived)), len(arrived) - len(set(arrived))
    if missing or repeated or len(arrived) != len(fed):
        return f"{host}.log: {missing} lines are missing, {repeated} repeated, {len(arrived)} of {len(fed)} arrived"
    place = next(number for number, pair in enumerate(zip(fed, arrived, strict=True)) if pair[0] != pair[1])
    return f"{host}.log: order or content differs from line {place} on"


def _sha256_sorted(lines: list[bytes]) -> str:
    digest = hashlib.sha256()
    for text in sorted(lines):
        digest.update(text)
    return digest.hexdigest()
