"""A table in memory for `CommitSink`: others commit to it as well, at the worst moment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa

from connect_core.sdk.kits.commits import CommitConflict, CommitSink, Last
from connect_core.sdk.kits.refused import RowsRefused
from connect_core.sdk.testing.memory import HATED, values_of
from connect_core.sdk.values import Json


class Commit(NamedTuple):
    rows: tuple[bytes | None, ...]
    name: str
    marker: str


@dataclass
class Lake:
    """`rivals` is how often another one commits between a look at the table and the commit that follows it. `files` are
    those that were staged."""

    commits: list[Commit] = field(default_factory=list)
    files: list[list[bytes | None]] = field(default_factory=list)
    rivals: int = 0

    def rows(self) -> list[bytes | None]:
        return [row for commit in self.commits for row in commit.rows]

    def commit_as_others(self) -> None:
        self.commits.append(Commit((), "others", ""))


class MemoryLake(CommitSink):
    def __init__(self, lake: Lake) -> None:
        super().__init__("memory")
        self._lake = lake

    @contextmanager
    def connect(self) -> Iterator[MemoryLake.Connection]:
        yield MemoryLake.Connection(self._lake)

    class Connection:
        def __init__(self, lake: Lake) -> None:
            self._lake = lake

        def stage(self, records: pa.RecordBatch) -> Json:
            values = values_of(records)
            if HATED in values:
                raise RowsRefused("Hated", "A value is hated")
            self._lake.files.append(values)
            return {"staged": len(self._lake.files) - 1}

        def last(self, name: str) -> Last:
            marker = next((one.marker for one in reversed(self._lake.commits) if one.name == name), None)
            return Last(str(len(self._lake.commits)), marker)

        def commit(self, staged: Sequence[Json], name: str, marker: str, behind: str) -> None:
            if self._lake.rivals:
                self._lake.rivals -= 1
                self._lake.commit_as_others()
            if behind != str(len(self._lake.commits)):
                raise CommitConflict("Another commit came first")
            rows = [row for one in staged for row in self._lake.files[one["staged"]]]
            self._lake.commits.append(Commit(tuple(rows), name, marker))
