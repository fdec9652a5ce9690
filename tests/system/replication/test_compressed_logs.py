"""A folder of logs and compressed files into a topic, with the commands and a real broker: rotated and compressed as by
logrotate, also behind a killed worker."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.packing import PACKERS, pack
from tests.site import Site

pytestmark = [pytest.mark.server, pytest.mark.usefixtures("warm_lanes")]


def write(path: Path, name: str, count: int) -> list[bytes]:
    lines = [b"%s line %07d" % (name.encode(), number) for number in range(count)]
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return lines


def test_logs_that_are_compressed_behind_a_killed_worker_are_delivered_once(sqlite_site: Site) -> None:
    site, logs = sqlite_site, sqlite_site.folder / "logs"
    logs.mkdir()
    lines = write(logs / "app.log", "app", 12_000)
    topic = {"rocketmq": {"name_servers": "${stack:name_servers}", "topic": site.topic, "queues": 4}}
    site.apply("in", {"source": {"file": {"path": "logs/*", "rotation_quiet_s": 0}}, "sink": topic})
    site.fault("batch-written")
    site.waybill("run", "in", "--engine", "inline", code=1)
    (logs / "app.log").rename(logs / "app.log.2")
    pack(logs / "app.log.2")
    lines += write(logs / "app.log", "new", 100)
    for number, ending in enumerate(PACKERS):
        lines += write(logs / f"drop-{number}.csv", ending, 6_000)
        pack(logs / f"drop-{number}.csv", ending)
    site.waybill("run", "in", "--engine", "inline")
    copy = shutil.copy2(logs / "app.log", site.folder)
    pack(Path(copy)).rename(logs / "app.log.gz")
    assert "nothing to move" in site.waybill("run", "in", "--engine", "inline")
    receipts = site.json("receipts", "in")["receipts"]
    assert sum(receipt["passed"] for receipt in receipts) == len(lines)
    assert sum(receipt["deduplicated"] for receipt in receipts) > 0
    assert sum(receipt["duplicates"] for receipt in receipts) == 0
    site.waybill("verify", "in")
    topics = {"rocketmq": {"name_servers": "${stack:name_servers}", "topics": [site.topic]}}
    site.apply("out", {"source": topics, "sink": {"file": {"path": "out.txt"}}})
    site.waybill("run", "out", "--engine", "inline")
    assert sorted((site.folder / "out.txt").read_bytes().splitlines()) == sorted(lines)


def test_a_stretch_of_a_compressed_file_is_moved_again(bare_site: Site) -> None:
    """Its place is one of what is in it."""
    site, path = bare_site, bare_site.folder / "a.csv"
    lines = write(path, "a", 200_000)
    pack(path, ".zst")
    site.apply("in", {"source": {"file": {"path": "*.zst"}}, "sink": {"file": {"path": "out.txt"}}})
    site.waybill("run", "in", "--engine", "inline")
    out = site.folder / "out.txt"
    assert out.read_bytes().splitlines() == lines
    size = len(lines[0]) + 1
    site.waybill("backfill", "in", "--range", f"{path}.zst:{150_000 * size - 3}-{150_010 * size}", "--engine", "inline")
    (again,) = site.folder.glob("out.txt.backfill-*")
    assert again.read_bytes().splitlines() == lines[150_000:150_010]
    assert "settled" in site.waybill("trace", "in", "--source", f"{path}.zst:{199_999 * size}")
