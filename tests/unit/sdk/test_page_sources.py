"""The sources of the page "Write a source" keep the contracts of their kits."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connect_core.sdk.kits.polled import Polled, PolledSource
from connect_core.sdk.records import Record
from connect_core.sdk.testing.driving import Follower
from connect_core.sdk.values import Json
from tests.page_code import blocks, module_of, of_the_lines, suite_of

TRAY = module_of("tray")


class TestTheLogOfThePage(suite_of("events").TestTheEvents):  # type: ignore[misc]
    pass


class TestTheQueueOfThePage(suite_of("tray").TestTheTray):  # type: ignore[misc]
    pass


class TestTheLinesOfThePage(of_the_lines().TestLines):  # type: ignore[misc]
    pass


def test_a_file_that_is_still_being_written_is_left_alone(tmp_path: Path) -> None:
    line = TRAY.Line(tmp_path)
    with (tmp_path / ".1.txt").open("wb") as file:
        file.write(b"first half ")
        file.flush()
        assert line.receive(10, 0.02) == []
        file.write(b"second half")
    (tmp_path / ".1.txt").rename(tmp_path / "1.txt")
    assert [message.record.value for message in line.receive(10, 0.02)] == [b"first half second half"]
    line.acknowledge(1)
    assert [*tmp_path.iterdir()] == []


class Orders(PolledSource):
    """With the queries that stand under "A table with a growing column"."""

    def __init__(self, database: sqlite3.Connection, query: str) -> None:
        super().__init__()
        self._database, self._query = database, query

    def poll(self, name: str, checkpoint: Json) -> Polled:
        rows = self._database.execute(self._query, (checkpoint.get("after", 0),)).fetchall()
        return Polled([Record(body) for _, body in rows], {"after": rows[-1][0]} if rows else checkpoint)


class Shop:
    """A table whose rows become visible in another order than that of their numbers. The time is `now`."""

    def __init__(self) -> None:
        self.now = 10_000
        self.database = sqlite3.connect(":memory:", isolation_level=None)
        self.database.create_function("unixepoch", 0, lambda: self.now)
        self.database.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, body BLOB, stored_at INTEGER)")

    def commit(self, *ids: int, written_at: int) -> None:
        rows = [(id_, b"%d" % id_, written_at) for id_ in ids]
        self.database.executemany("INSERT INTO orders VALUES (?, ?, ?)", rows)


@pytest.fixture
def shop() -> Iterator[Shop]:
    made = Shop()
    yield made
    made.database.close()


def _queries() -> Any:
    (code,) = (block for block in blocks("write-a-source.md") if "unixepoch" in block)
    found: dict[str, str] = {}
    exec(code, found)
    return found


def test_a_row_that_is_committed_late_is_read_with_the_delay_of_the_page(shop: Shop) -> None:
    follower = Follower(Orders(shop.database, _queries()["ROWS"]))
    begin = shop.now
    shop.commit(1, 2, 4, written_at=begin)
    read = follower.run()
    shop.now = begin + 300
    shop.commit(3, written_at=begin)
    read += follower.run()
    shop.now = begin + 601
    assert read == []
    assert follower.run() == [b"1", b"2", b"3", b"4"]


def test_without_the_delay_it_is_lost_as_the_page_says(shop: Shop) -> None:
    query = "SELECT id, body FROM orders WHERE id > ? ORDER BY id LIMIT 500"
    follower = Follower(Orders(shop.database, query))
    shop.commit(1, 2, 4, written_at=shop.now)
    read = follower.run()
    shop.commit(3, written_at=shop.now)
    shop.commit(5, written_at=shop.now)
    assert read + follower.run() == [b"1", b"2", b"4", b"5"]
    assert follower.gaps == []
    assert any("becomes visible" in condition for condition in PolledSource.guarantee.conditions)
