"""A folder of logs that several hosts share, as they share that of a network file system, and what of it is in a topic.

Each host has a device number of its own for it, none says when files were made, and inodes are the same everywhere: it
is a file system in memory, of the kind that tells no births, and on each host an overlay that shows it and cannot be
written. An overlay keeps names that it has looked up; it is mounted anew to see what was renamed.
"""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.faults.kit.topics import records_of
from tests.faults.rows import FaultRow
from tests.hosts.hosts import Host
from tests.site import Site

LOGS = ("a.log", "b.log")
_LIMIT_S = 20
_SHOW = """
set -e
while mountpoint -q "$1/logs"; do umount "$1/logs"; done
mount -t overlay overlay -o "ro,lowerdir=$1/logs:$1/none" "$1/logs"
"""


@contextmanager
def shared_folder(folder: Path) -> Iterator[Path]:
    """Empty; for hosts that are made later."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "ramfs", "none", str(folder)], check=True, timeout=_LIMIT_S)
    try:
        for name in ("logs", "none"):
            (folder / name).mkdir()
        yield folder / "logs"
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True, timeout=_LIMIT_S)


def show(host: Host, logs: Path) -> int:
    """The folder on a host, as it is now; its device number there."""
    mounting = host.start(["sh", "-c", _SHOW, "sh", str(logs.parent)])
    assert mounting.wait(_LIMIT_S) == 0
    asking = host.start(["stat", "--format", "%d", str(logs)], stdout=subprocess.PIPE)
    told, _ = asking.communicate(timeout=_LIMIT_S)
    return int(told)


def write(logs: Path, begin: int, end: int) -> None:
    """Lines of each log."""
    for name in LOGS:
        with (logs / name).open("a") as file:
            file.writelines(f"{name} {number}\n" for number in range(begin, end))


def document(site: Site, logs: Path, **options: object) -> dict[str, Any]:
    sink = {"name_servers": list(site.name_servers), "topic": site.topic}
    return {"source": {"file": {"path": f"{logs}/*.log", **options}}, "sink": {"rocketmq": sink}}


def require_delivered(site: Site, name: str, lines: int, row: FaultRow) -> None:
    """So many lines of each log once and in order, read without the product's accounts; and no repeat told."""
    bodies = [body.decode() for queue in records_of(site.name_servers, site.topic).values() for body in queue]
    counted = Counter(bodies)
    wanted = {name: [f"{name} {number}" for number in range(lines)] for name in LOGS}
    row.lost = sum(line not in counted for log in wanted.values() for line in log)
    row.repeated = sum(count - 1 for count in counted.values())
    row.duplicates = sum(receipt["duplicates"] for receipt in site.json("receipts", name)["receipts"])
    row.reordered = int(any([body for body in bodies if body.startswith(name)] != wanted[name] for name in LOGS))
    assert (row.lost, row.repeated, row.duplicates, row.reordered) == (0, 0, 0, 0)
    assert len(bodies) == len(LOGS) * lines
    assert site.json("gaps", name)["gaps"] == []
