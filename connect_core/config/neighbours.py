"""Whether several connectors go together: a file has one writer, which no other connector reads, and no circle of
connectors feeds itself.

Looks at nothing but which files there are.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from connect_core.config.endpoints import End
from connect_core.config.written import Place, Written
from connect_core.sdk.plugin import ConfiguredEnd, FilesRead, FilesWritten
from connect_core.sdk.values import Json

Wrong = tuple["Neighbour", Place, str]
"""In which document, where in it, and what is wrong."""


@dataclass(frozen=True)
class StreamBeside:
    """A backfill or a replay that writes to a target of its own until it is over: `document` as it writes it."""

    connector: str
    stream: str
    document: Json

    def written(self) -> Written:
        return Written(self.document, f"connector {self.connector} in {self.stream}")

    def until(self) -> str:
        return f"or cancel {self.stream} (waybill backfills cancel)"


@dataclass(frozen=True)
class Neighbour:
    """A connector whose ends are sound. One that `selects` by a filter or rules need not pass on what it reads. `place`
    is where its sink stands: a second target of the same connector is a neighbour of its own, which reads nothing.
    `until` is how else its target becomes free."""

    name: str
    written: Written
    source: End
    sink: End
    selects: bool
    place: Place = ("sink",)
    until: str = ""

    @cached_property
    def source_end(self) -> ConfiguredEnd:
        return self.source.configured()

    @cached_property
    def sink_end(self) -> ConfiguredEnd:
        return self.sink.configured()

    @cached_property
    def writes(self) -> FilesWritten:
        end = self.sink_end
        return end.plugin.files_written(end.options) or FilesWritten("", ())

    @cached_property
    def reads(self) -> FilesRead:
        """Looks for files."""
        end = self.source_end
        read = end.plugin.files_read(end.options) if self.place == ("sink",) else None
        return read or FilesRead("", lambda written: False)

    def told(self) -> str:
        """Who it is, for the fault of another one."""
        where = self.written.where
        return where if where.startswith("connector ") else f"connector {self.name} ({where})"


def unfit_neighbours(
    given: Sequence[Neighbour], others: Sequence[Neighbour], beside: Sequence[Neighbour]
) -> Iterator[Wrong]:
    """What is wrong with the documents that are `given`, side by side and beside the `others`, which stay. Streams
    `beside` the live ones only have their files for themselves: they end."""
    yield from unfit_files(given, others, beside)
    yield from _circles(given, [*given, *others])


def unfit_files(
    given: Sequence[Neighbour], others: Sequence[Neighbour], beside: Sequence[Neighbour]
) -> Iterator[Wrong]:
    """As far as files are concerned."""
    yield from _shared_files(given, [*others, *beside])
    yield from _files_handed_over(given, [*others, *beside])


def another_source(data: Json, before: Json) -> tuple[Place, str] | None:
    """Place and words for a document that reads another system than the connector of its name does."""
    now, was = _system(data.get("source")), _system(before.get("source"))
    if not now or not was or now == was:
        return None
    name = data.get("name")
    return (
        ("source", now),
        f"connector {name} reads {was}: its offsets mean nothing to {now}. Give this document another name, or start "
        f"again under this one: `waybill connectors delete {name}`, then apply it",
    )


def _system(end: object) -> str:
    return str(next(iter(end))) if isinstance(end, Mapping) and len(end) == 1 else ""


# ---------------------------------------------------------------------------------------------------------- one writer


def _shared_files(given: Sequence[Neighbour], others: Sequence[Neighbour]) -> Iterator[Wrong]:
    """What of the `given` writes a file that another one of them writes, or one of the `others`."""
    writers = {key: one for one in others for path in one.writes.paths for key in _keys(path)}
    for one in given:
        for path in one.writes.paths:
            other = next((writers[key] for key in _keys(path) if key in writers), None)
            if other is not None and other is not one:
                yield (
                    one,
                    (*one.place, one.sink.system, one.writes.option),
                    f"{path} is also written by {other.told()}, and a file can have one writer only: "
                    + (f"give another path, {other.until}" if other.until else "give one of them another path"),
                )
                break
        for path in one.writes.paths:
            for key in _keys(path):
                writers.setdefault(key, one)


def _files_handed_over(given: Sequence[Neighbour], others: Sequence[Neighbour]) -> Iterator[Wrong]:
    """Lines that have no receipt are moved away after a crash and written again, perhaps in another order: who has read
    them misses what takes their place."""
    why = "lines there may still be moved and written again. Let them share a topic, or read the same source"
    for one in given:
        if writer := next((other for other in [*given, *others] if _hands_over(other, one)), None):
            place: Place = ("source", one.source.system, one.reads.option)
            yield one, place, f"it names a file that {writer.told()} writes: {why}"
        if reader := next((other for other in others if _hands_over(one, other)), None):
            place = (*one.place, one.sink.system, one.writes.option)
            yield one, place, f"{reader.told()} reads this file: {why}"


def _hands_over(writer: Neighbour, reader: Neighbour) -> bool:
    """Whether one reads a file that the other writes. A document that reads its own target has that fault by itself."""
    return writer is not reader and bool(writer.writes.paths) and reader.reads.reads(writer.writes.paths)


def _keys(path: str) -> Iterator[str | tuple[int, int]]:
    """By what a file is known: its real path, and, where it is there, itself under whatever name."""
    yield path
    try:
        status = os.stat(path)
    except OSError:
        return
    yield status.st_dev, status.st_ino


# ------------------------------------------------------------------------------------------------------------- circles


def _circles(given: Sequence[Neighbour], every: Sequence[Neighbour]) -> Iterator[Wrong]:
    """Connectors that pass on everything, each of which reads what the one before it writes. One that feeds itself
    alone is told with its own document."""
    passing = [one for one in every if not one.selects]
    found: set[frozenset[str]] = set()
    for one in given:
        circle = _way_back(one, passing) if one in passing else []
        names = frozenset({one.name, *(each.name for each in circle)})
        if circle and names not in found:
            found.add(names)
            yield (
                one,
                ("sink", one.sink.system),
                f"what it writes is read by {', then '.join(each.told() for each in circle)}, which writes what "
                f"{one.name} reads: every record would circulate forever",
            )


def _way_back(start: Neighbour, every: Sequence[Neighbour]) -> list[Neighbour]:
    """The shortest way from `start` over others back to it, without itself; empty where there is none."""
    ways = [[start]]
    reached = {start.name}
    while ways:
        way = ways.pop(0)
        for following in every:
            if not _feeds(way[-1], following):
                continue
            if following is start and len(way) > 1:
                return way[1:]
            if following.name not in reached:
                reached.add(following.name)
                ways.append([*way, following])
    return []


def _feeds(writer: Neighbour, reader: Neighbour) -> bool:
    """Whether one reads what the other writes, and passes it on. No file is handed over."""
    sink, source = writer.sink_end, reader.source_end
    return sink.name == source.name and sink.plugin.feeds(sink.options, source.options)
