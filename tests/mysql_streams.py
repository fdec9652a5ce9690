"""What a source of `mysql_changes` brings, look by look, with no run around it."""

from __future__ import annotations

import json
import os

from connect_core.sdk.records import Partition
from connect_core.sdk.testing.driving import limit, range_of
from connect_core.sdk.values import Bounds, Position
from connect_core.systems.mysql.binlog.options import MysqlChangesOptions
from connect_core.systems.mysql.binlog.source import MysqlChangesSource
from tests.mariadb import Database, MariaDB


class Stream:
    """Of `orders`, from where the log of the first server ends."""

    def __init__(self, database: Database) -> None:
        self.database, self.partition = database, Partition(database.name)
        self.at: Position | None = None
        self.ids: list[int] = []
        self.reads()

    def look(self) -> Bounds:
        usual = {"tables": ["orders"], "every_s": 0.02, "snapshot": "never", "uid": "one", "schemas": False}
        self.source = MysqlChangesSource(MysqlChangesOptions.model_validate({**self.database.options, **usual}))
        [seen] = self.source.available_offsets({self.partition: self.at}).values()
        assert seen.failure is None, seen.failure
        return seen

    def accepts(self) -> None:
        """As `--accept-gaps` does."""
        seen = self.look()
        assert [gap.loses for gap in seen.gaps] == [True]
        self.at = Position(seen.incarnation, seen.begin, seen.evidence)

    def reads(self, most: int = 1_000) -> list[str]:
        """What is there, up to so many rows, but what was lost. What the look tells."""
        seen = self.look()
        if any(gap.loses for gap in seen.gaps):
            return [gap.reason for gap in seen.gaps]
        wanted, behind = range_of(self.partition, seen, max_records=most), seen.begin
        for batch in self.source.read(wanted, limit()) if seen.end > seen.begin else ():
            assert not batch.rejects
            self.ids += [json.loads(one)["after"]["id"] for one in batch.records.column("value").to_pylist()]
            behind = batch.next_offset
        self.at = Position(seen.incarnation, behind, self.source.evidence(wanted, behind))
        return [gap.reason for gap in seen.gaps]


def newest_file(database: Database) -> tuple[str, int]:
    name, size, *_ = database.run("SHOW BINARY LOGS")[-1]
    return str(name), int(size)


def crash_with(server: MariaDB, name: str, size: int) -> None:
    """The server, when it has written so much of a file of its log. It is started again."""
    server.kill()
    os.truncate(server.folder / "data" / name, size)
    server.start()
