"""Offsets of many partitions are moved at once, all or none: by people who are at it side by side, too."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from connect_core.errors import ConfigError, LeaseHeld, Retriable
from connect_core.ledger import Connector
from connect_core.service import documents, offsets
from connect_core.service.opened import AtWork, working

FILES, END = 12, len("one\ntwo\n")
DOCUMENT = """\
version: 1
name: many
tasks: 3
source: {file: {path: many/*.log}}
sink: {rocketmq: {name_servers: ["127.0.0.1:1"], topic: t}}
"""


@pytest.fixture
def many(opened: AtWork, folder: Path) -> AtWork:
    (folder / "many").mkdir()
    for number in range(FILES):
        (folder / "many" / f"{number:02}.log").write_text("one\ntwo\n")
    Path("many.yaml").write_text(DOCUMENT)
    documents.apply([Path("many.yaml")], say=lambda _: None)
    return opened


def keys(folder: Path) -> list[str]:
    return [str(folder / "many" / f"{number:02}.log") for number in range(FILES)]


def moved(folder: Path, to: int | None) -> bool:
    """False where it was refused."""
    with working() as opened:
        try:
            offsets.set_offsets(opened, "many", dict.fromkeys(keys(folder), to), why="x", still=agreed, say=print)
        except (LeaseHeld, Retriable):
            return False
    return True


def agreed(connector: Connector) -> None:
    """Whatever it is by now."""


def stands(opened: AtWork) -> set[int]:
    return {one["offset"] for one in offsets.committed(opened, "many")}


def test_all_are_moved(many: AtWork, folder: Path) -> None:
    for to, at in ((4, 4), (END, END), (None, 0)):
        assert moved(folder, to)
        assert stands(many) == {at}
        assert len(offsets.committed(many, "many")) == FILES
    assert (
        len(
            {
                offsets.undo(many, "many", key, agree=lambda _: None, say=print)["after"]["offset"]
                for key in keys(folder)
            }
        )
        == 1
    )
    assert stands(many) == {END}


def test_none_is_moved_where_one_cannot_be(many: AtWork, folder: Path) -> None:
    assert moved(folder, 4)
    for wrong in ({keys(folder)[7]: 5}, {"nowhere": 0}):
        with pytest.raises(ConfigError):
            offsets.set_offsets(
                many, "many", {**dict.fromkeys(keys(folder), 0), **wrong}, why="x", still=agreed, say=print
            )
        assert stands(many) == {4}


def test_whoever_may_not_any_more_moves_nothing(many: AtWork, folder: Path) -> None:
    """It is asked when nobody else can work on them: a person may have begun a run since."""
    assert moved(folder, 4)

    def refuse(connector: Connector) -> None:
        raise ConfigError(f"{connector.name} was begun")

    with pytest.raises(ConfigError, match="many was begun"):
        offsets.set_offsets(many, "many", dict.fromkeys(keys(folder), 0), why="x", still=refuse, say=print)
    assert stands(many) == {4}


def test_of_two_at_once_each_moves_all_or_none(many: AtWork, folder: Path) -> None:
    assert moved(folder, 4)
    for _ in range(8):
        with ThreadPoolExecutor() as both:
            to = {0: both.submit(moved, folder, 0), END: both.submit(moved, folder, END)}
            done = {at for at, one in to.items() if one.result()}
        assert done
        assert stands(many) <= done
        assert len(stands(many)) == 1
