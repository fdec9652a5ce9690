"""How a backfill begins: what it takes of the source, and what of that is kept beside what it moves itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from connect_core.config import load_settings
from connect_core.replication.backfill.request import Request
from connect_core.replication.backfill.start import begun
from connect_core.replication.driver.context import RunContext, RunListener
from connect_core.replication.driver.prepare import run_context
from connect_core.sdk.records import Partition
from connect_core.sdk.testing.driving import Follower
from connect_core.sdk.values import LIVE, Position
from connect_core.systems.file.options import FileSourceOptions
from connect_core.systems.file.source import FileSource
from tests.unit.replication.world import World

LINES = b"".join(b"line %03d\n" % number for number in range(300))
"""2,700 bytes: three parts of 1,024."""


@pytest.fixture
def live(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunContext:
    """Of a connector that reads a large file in parts, and has never run."""
    return _never_run(world, tmp_path, monkeypatch, {"parallel": True, "sub_partition_bytes": 1024})


@pytest.fixture
def whole(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunContext:
    return _never_run(world, tmp_path, monkeypatch, {"rotation_quiet_s": 0})


def _never_run(world: World, folder: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, object]) -> RunContext:
    monkeypatch.setenv("WAYBILL_FILES_ROOTS", str(folder))
    (folder / "app.log").write_bytes(LINES)
    source = {"path": str(folder / "app.log"), **options}
    document = {
        "version": 1,
        "name": "parts",
        "source": {"file": source},
        "sink": {"file": {"path": str(folder / "out.txt")}},
    }
    applied = world.ledger.apply("parts", document, who="tests").connector
    context = world.context()
    return run_context(world.ledger, load_settings(None), folder, applied, context.engine, context.listener)


def _start(live: RunContext, span: str) -> list[tuple[str, int, int]]:
    stored = begun(live, load_settings(), Request(ranges=(span,)), who="ann")
    assert stored is not None
    return [(_span(part.partition), part.begin, part.end) for part in stored.parts]


def _span(part: Partition) -> str:
    return part.key.split("#")[1].split("@")[0]


def _shared_out(live: RunContext) -> set[str]:
    return set(map(_span, live.ledger.partitions(live.connector.uid)))


def test_the_other_parts_of_a_file_are_shared_out_with_the_one_that_is_moved(live: RunContext) -> None:
    """Of a file of which one part is known a source lists no other: they would never be read."""
    assert _start(live, "#1026-:1026-1035") == [("1026-2052", 1026, 1035)]
    assert _shared_out(live) == {"0-1026", "1026-2052", "2052-"}


def test_a_file_that_a_run_has_split_meanwhile_is_not_split_again(
    live: RunContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of it would be read twice. What is to be moved is chosen anew among the parts that are there."""
    listed = FileSource.partitions
    options = live.resolved.source.options | {"sub_partition_bytes": 1500}
    other = FileSource(FileSourceOptions.model_validate(options))

    def beaten(source: FileSource, known: Sequence[Partition]) -> list[Partition]:
        if not known:
            live.ledger.assign(live.connector.uid, listed(other, ()), 1)
        return listed(source, known)

    monkeypatch.setattr(FileSource, "partitions", beaten)
    said: list[str] = []
    told = replace(live, listener=RunListener(said.append, lambda progress: None))
    assert _start(told, "#0-:3-13") == [("0-1503", 9, 18)]
    assert _shared_out(live) == {"0-1503", "1503-"}
    assert len(said) == 1, "once, of what is moved"


@pytest.mark.parametrize(("span", "moved"), [("#1026-:-", (1026, 2052)), ("#1026-:0-1035", (1026, 1035))])
def test_a_part_that_was_never_read_is_moved_from_where_it_begins(
    live: RunContext, span: str, moved: tuple[int, int]
) -> None:
    """What stands before it in the file is another part's."""
    assert _start(live, span) == [("1026-2052", *moved)]


def _live_position(live: RunContext, path: Path) -> Position | None:
    (position,) = live.ledger.positions(live.connector.uid, LIVE, [Partition(str(path))]).values()
    return position


def test_a_file_that_is_moved_before_the_first_run_is_followed_by_it(whole: RunContext, tmp_path: Path) -> None:
    log = tmp_path / "app.log"
    stored = begun(whole, load_settings(), Request(ranges=(f"{log}:0-900",)), who="ann")
    assert stored is not None
    follower = Follower(FileSource(FileSourceOptions.model_validate(whole.resolved.source.options)))
    follower.positions[Partition(str(log))] = _live_position(whole, log)
    log.rename(f"{log}.1")
    log.write_bytes(b"new\n")
    assert follower.run() == [*LINES.splitlines(), b"new"]
    assert follower.gaps == []


def test_where_the_live_stream_stands_is_left(whole: RunContext, tmp_path: Path) -> None:
    log = tmp_path / "app.log"
    whole.ledger.assign(whole.connector.uid, [Partition(str(log))], 1)
    standing = {Partition(str(log)): Position(0, 900)}
    whole.ledger.keep_first(whole.connector.uid, LIVE, standing, whole.ledger.begun(whole.connector.uid, LIVE, ()))
    assert begun(whole, load_settings(), Request(ranges=(f"{log}:0-900",)), who="ann")
    assert _live_position(whole, log) == Position(0, 900)
