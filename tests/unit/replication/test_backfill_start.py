"""How a backfill begins: what it takes of the source, and what of that is kept beside what it moves itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from connect_core.config import load_settings
from connect_core.replication.backfill.request import Request
from connect_core.replication.backfill.start import begun
from connect_core.replication.driver.context import RunContext
from connect_core.replication.driver.prepare import run_context
from connect_core.sdk.records import Partition
from connect_core.systems.file.options import FileSourceOptions
from connect_core.systems.file.source import FileSource
from tests.unit.replication.world import World

LINES = b"".join(b"line %03d\n" % number for number in range(300))
"""2,700 bytes: three parts of 1,024."""


@pytest.fixture
def live(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunContext:
    """Of a connector that reads a large file in parts, and has never run."""
    monkeypatch.setenv("WAYBILL_FILES_ROOTS", str(tmp_path))
    (tmp_path / "app.log").write_bytes(LINES)
    source = {"path": str(tmp_path / "app.log"), "parallel": True, "sub_partition_bytes": 1024}
    document = {
        "version": 1,
        "name": "parts",
        "source": {"file": source},
        "sink": {"file": {"path": str(tmp_path / "out.txt")}},
    }
    applied = world.ledger.apply("parts", document, who="tests").connector
    context = world.context()
    return run_context(world.ledger, load_settings(None), tmp_path, applied, context.engine, context.listener)


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
    assert _start(live, "#0-:0-9") == [("0-1503", 0, 9)]
    assert _shared_out(live) == {"0-1503", "1503-"}


@pytest.mark.parametrize(("span", "moved"), [("#1026-:-", (1026, 2052)), ("#1026-:0-1035", (1026, 1035))])
def test_a_part_that_was_never_read_is_moved_from_where_it_begins(
    live: RunContext, span: str, moved: tuple[int, int]
) -> None:
    """What stands before it in the file is another part's."""
    assert _start(live, span) == [("1026-2052", *moved)]
