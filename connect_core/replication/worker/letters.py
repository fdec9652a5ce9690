"""Dead letters as a source: what a replay reads instead of the source of its connector.

The offsets of a partition are the numbers of its letters, which the ledger has given. Driver and worker each put it
around the source of the connector, which is asked for nothing but names: it need not be there, nor have the records any
more. The driver knows where the parts end; the letters themselves come to the worker with its lane.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from connect_core.config import LetterCiphers
from connect_core.errors import ConfigError
from connect_core.sdk.records import Partition
from connect_core.sdk.source import Followed, OfFiles, Source
from connect_core.sdk.values import OPEN_END, Bounds, Json, Limit, Position, Range, Reject, SourceBatch
from connect_core.work import Letter, LetterKey, Letters

LETTERS_AT_ONCE = 200
"""So many make a batch: what a lane has of them is small, and its time may end between two batches."""


class LettersSource:
    """`letters` are those of each range, by id of its partition; the driver has none."""

    def __init__(self, names: Source, letters: Mapping[str, Letters] | None = None) -> None:
        self._names, self._letters = names, letters or {}

    def partitions(self, known: Sequence[Partition]) -> list[Partition]:
        return list(known)

    def topic(self, partition: Partition) -> str:
        return self._names.topic(partition)

    def available_offsets(self, known: Mapping[Partition, Position | None]) -> dict[Partition, Bounds]:
        """All of them: a replay plans no further than its parts."""
        places = {one: at or Position(0, 0) for one, at in known.items()}
        return {one: Bounds(at.incarnation, at.offset, 0, OPEN_END - 1, grows=False) for one, at in places.items()}

    def offsets_for_time(self, partitions: Sequence[Partition], moment: datetime) -> dict[Partition, int]:
        raise ConfigError("Dead letters are chosen by their numbers", next_step="Give --since to choose them by time")

    def align_offset(self, partition: Partition, seen: Bounds, offset: int) -> int:
        return offset

    def read(self, wanted: Range, limit: Limit) -> Iterator[SourceBatch]:
        """Numbers that are no letter of this range hold nothing."""
        from connect_core.pipeline.letters import as_records  # and Arrow, which a driver does without

        letters = self._letters.get(wanted.partition.id, Letters((), wanted.begin))
        rows, place = letters.rows, wanted.begin
        for start in range(0, len(rows), LETTERS_AT_ONCE):
            if start and limit.quantum_left_s() <= 0:
                return
            some = rows[start : start + LETTERS_AT_ONCE]
            records = as_records([one for one in some if one.id not in letters.refused])
            refused = tuple(_refused(one) for one in some if one.id in letters.refused)
            yield SourceBatch(records, some[-1].id + 1, _holes(place, some), refused)
            place = some[-1].id + 1
        if letters.upto > place:
            yield SourceBatch(as_records(()), letters.upto, ((place, letters.upto),))

    def wait(self, seen: Mapping[Partition, Bounds], limit_s: float) -> None:
        """Nothing comes."""

    def follow(self, wanted: Sequence[Range], limit: Limit, idle_timeout_s: float) -> Iterator[Followed]:
        return iter(())

    def evidence(self, wanted: Range, end: int) -> Json:
        return {}

    def commit_offsets(self, positions: Mapping[Partition, Position]) -> None:
        """Only the live stream does."""


class LinesSource(LettersSource):
    """Of the lines of files: rules name the file that a line is from."""

    def __init__(self, names: Source, files: OfFiles, letters: Mapping[str, Letters] | None = None) -> None:
        super().__init__(names, letters)
        self._files = files

    def path_of(self, partition: Partition) -> str:
        return self._files.path_of(partition)


def letters_source(names: Source, letters: Mapping[str, Letters] | None = None) -> LettersSource:
    """Around the source of a connector."""
    return LinesSource(names, names, letters) if isinstance(names, OfFiles) else LettersSource(names, letters)


def _holes(begin: int, letters: Sequence[Letter]) -> tuple[tuple[int, int], ...]:
    """The stretches before each of the letters that hold none."""
    begins = [begin, *(one.id + 1 for one in letters)]
    return tuple((at, one.id) for at, one in zip(begins, letters, strict=False) if at < one.id)


def _refused(letter: Letter) -> Reject:
    return Reject(
        letter.id,
        0,
        "read",
        "NotAuthentic",
        "what the ledger keeps of it was changed since it was encrypted, or is that of another dead letter",
        b"",
        letter.topic,
    )


def opened_letters(letters: Mapping[str, Letters], keys: Sequence[LetterKey]) -> Mapping[str, Letters]:
    """With what is encrypted in plain. Raises ConfigError when a key cannot be read: before anything is read."""
    ciphers = LetterCiphers(keys)
    return {partition: _opened(some, ciphers) for partition, some in letters.items()}


def _opened(letters: Letters, ciphers: LetterCiphers) -> Letters:
    rows: list[Letter] = []
    refused: set[int] = set()
    for one in letters.rows:
        if held := ciphers.opened(one.value, one.attributes, one.place):
            rows.append(one._replace(value=held.original, attributes=held.attributes))
        else:
            rows.append(one)
            refused.add(one.id)
    return Letters(tuple(rows), letters.upto, frozenset(refused))
