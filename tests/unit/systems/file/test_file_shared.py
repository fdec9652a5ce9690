"""Files that several hosts share: each host has its own device number for the file system that holds them.

What another host has seen differs from what this one sees in that number alone. Births are unknown, as on most network
file systems, so that nothing else would tell that it is the same file.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from connect_core.errors import Retriable
from connect_core.sdk.records import Partition
from connect_core.sdk.testing.driving import Follower, limit, range_of
from connect_core.sdk.values import OPEN_END, Bounds, Gap, Json, Position
from connect_core.systems.file import identity
from connect_core.systems.file.options import FileSourceOptions
from connect_core.systems.file.shared import SharedFolders
from connect_core.systems.file.source import FileSource

FURTHER = 1_000
"""Device numbers of the other host are so much higher."""
OTHER_FILE_SYSTEM = "/proc"


@pytest.fixture(autouse=True)
def births_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "born_ns", lambda fd: 0)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "app.log"
    path.write_bytes(b"one\ntwo\n")
    return path


def source(path: Path, **options: object) -> FileSource:
    return FileSource(FileSourceOptions.model_validate({"path": str(path), "rotation_quiet_s": 0, **options}))


def of_another_host(evidence: Json) -> Json:
    numbered = {**evidence, "dev": evidence["dev"] + FURTHER}
    former = [{**one, "dev": one["dev"] + FURTHER} for one in evidence.get("former", ())]
    return {**numbered, **({"former": former} if former else {})}


def moved_to_another_host(follower: Follower, to: FileSource) -> Follower:
    """The next run is there."""
    positions = {
        partition: replace(position, evidence=of_another_host(position.evidence)) if position else None
        for partition, position in follower.positions.items()
    }
    return Follower(to, positions)


def planned_elsewhere(log: Path) -> tuple[Partition, Bounds]:
    partition = Partition(str(log))
    bounds = source(log).available_offsets({partition: None})[partition]
    return partition, replace(bounds, evidence=of_another_host(bounds.evidence))


@pytest.mark.parametrize("parallel", [False, True])
def test_what_one_host_has_begun_another_reads_on(log: Path, parallel: bool) -> None:
    options = {"shared": True, "parallel": parallel}
    here = Follower(source(log, **options))
    assert here.run() == [b"one", b"two"]
    with log.open("ab") as file:
        file.write(b"three\n")
    there = moved_to_another_host(here, source(log, **options))
    assert there.run() == [b"three"]
    assert there.gaps == []


def test_without_the_option_it_is_another_file(log: Path) -> None:
    here = Follower(source(log))
    here.run()
    there = moved_to_another_host(here, source(log))
    [bounds] = there.source.available_offsets(there.positions).values()
    assert bounds.gaps == (Gap(0, 8, None, "replaced"),)


def test_a_lane_reads_what_a_driver_on_another_host_has_planned(log: Path) -> None:
    wanted = range_of(*planned_elsewhere(log))
    reading = source(log, shared=True)
    [batch] = reading.read(wanted, limit())
    assert batch.records.column("value").to_pylist() == [b"one", b"two"]
    assert reading.evidence(wanted, 8)["dev"] == os.stat(log).st_dev
    with pytest.raises(Retriable, match="no longer the one that was planned"):
        list(source(log).read(wanted, limit()))


@pytest.mark.parametrize("there", ["nothing", "no folder", "another file"])
def test_a_lane_reads_nothing_where_the_path_leads_elsewhere(log: Path, there: str) -> None:
    planned = planned_elsewhere(log)
    kept = log.parent.with_name(f"{log.parent.name}-kept")
    log.parent.rename(kept)
    if there != "no folder":
        log.parent.mkdir()
    if there == "another file":
        log.write_bytes((kept / log.name).read_bytes())
    with pytest.raises(Retriable, match="no longer the one that was planned"):
        list(source(log, shared=True).read(range_of(*planned), limit()))


def test_a_backfill_begins_with_a_line_of_what_another_host_has_seen(log: Path) -> None:
    partition, bounds = planned_elsewhere(log)
    assert source(log, shared=True).align_offset(partition, bounds, 2) == 4


def test_a_lane_follows_what_a_driver_on_another_host_has_planned(log: Path) -> None:
    """It is where it was: nobody needs to look for it, and the quantum goes on."""
    partition, bounds = planned_elsewhere(log)
    wanted = range_of(partition, replace(bounds, end=OPEN_END))
    reading = source(log, shared=True)
    found: list[bytes] = []
    for _, batch in reading.follow([wanted], limit(), 0.3):
        assert not isinstance(batch, Exception)
        found += batch.records.column("value").to_pylist()  # type: ignore[union-attr]
        if len(found) == 2:
            with log.open("ab") as file:
                file.write(b"three\n")
    assert found == [b"one", b"two", b"three"]


def test_a_file_that_was_renamed_is_known_on_another_host(log: Path) -> None:
    """Though the pattern names it under its new name as well."""
    pattern = log.with_name("*.log")
    here = Follower(source(pattern, shared=True))
    here.run()
    log.rename(log.with_name("old.log"))
    log.write_bytes(b"three\n")
    assert here.run() == [b"three"]
    there = moved_to_another_host(here, source(pattern, shared=True))
    assert (there.run(), there.gaps) == ([], [])


def test_what_a_driver_has_seen_of_a_file_counts_when_a_lane_on_another_host_has_read_it(log: Path) -> None:
    driver = source(log, shared=True)
    partition = Partition(str(log))
    bounds = driver.available_offsets({partition: None})[partition]
    settled = {partition: Position(0, 8, of_another_host(replace_end(bounds, log)))}
    with log.open("ab") as file:
        file.write(b"three\n")
    assert driver.available_offsets(settled)[partition].end == 14
    log.unlink()
    assert driver.available_offsets(settled)[partition].gaps == (Gap(0, 8, None, "deleted"),)


def replace_end(bounds: Bounds, log: Path) -> Json:
    with identity.OpenFile(str(log)) as file:
        return file.evidence(bounds.end, size=bounds.end).as_json()


@pytest.mark.parametrize(("ahead_s", "read"), [(-10, []), (10, []), (-40, [b"half"]), (40, [b"half"])])
def test_a_last_line_is_whole_when_clocks_that_differ_less_than_its_time_to_wait_say_so(
    log: Path, ahead_s: float, read: list[bytes]
) -> None:
    """The time of a file is set by the clock of the host that has written it, or by that of the file server."""
    follower = Follower(source(log, shared=True, rotation_quiet_s=30))
    assert follower.run() == [b"one", b"two"]
    with log.open("ab") as file:
        file.write(b"half")
    log.rename(log.with_name("app.log.1"))
    os.utime(log.with_name("app.log.1"), (0, time.time() + ahead_s))
    assert follower.run() == read


def devices(evidence: Json) -> Sequence[int]:
    here = SharedFolders().as_here(evidence)
    return [here["dev"], *(one["dev"] for one in here.get("former", ()))]


def test_the_number_is_that_of_the_folder_on_this_host(log: Path) -> None:
    """Two hosts may have one number for different file systems."""
    mine, others = os.stat(log).st_dev, os.stat(OTHER_FILE_SYSTEM).st_dev
    former = [{"dev": mine, "folder": OTHER_FILE_SYSTEM}, {"dev": others, "folder": str(log.parent)}]
    assert devices({"dev": others, "path": str(log), "former": former}) == [mine, others, mine]
    assert devices({"dev": mine, "path": f"{OTHER_FILE_SYSTEM}/app.log"}) == [others]


def test_a_folder_that_is_gone_was_where_the_one_above_it_is(log: Path) -> None:
    assert devices({"dev": 1, "path": str(log.parent / "gone" / "since" / "a.log")}) == [os.stat(log).st_dev]


def test_evidence_that_names_no_folder_stays_as_it_is() -> None:
    """Positions that a person gave, and files that an older version has read."""
    assert SharedFolders().as_here({}) == {}
    older = {"former": [{"dev": 7, "folder": ""}]}
    assert SharedFolders().as_here(older) == older
