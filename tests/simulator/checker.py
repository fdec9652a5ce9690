"""What came out against what went in, without the product: nothing of it is imported here, nor called.

Given is the world's own history: which line or record was written where and when, what destroyed it, what a person did.
Arrived are the bytes of the target files and the bodies in the target's queues. What the ledger tells people (gaps,
dead letters, moves of offsets) is read from its tables by plain SQL, and excuses exactly what it names. A repeat is
excused only by as many possible ones as were told, where a target had forgotten what nobody had looked at; the
condition under which there may be others, a broker that holds a request back, is not met here.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Given:
    """One line or record: its partition's key in the ledger, and its place there. `lost` says what destroyed it in the
    source; `unseen` that nobody looked at its file between its writing and that; `required` that it must arrive,
    `forbidden` that it must not. `nth_file` counts the files of its log; one that is `hidden` came and went between two
    looks, behind a file that was renamed: nothing can tell that it was ever there."""

    partition: str
    offset: int
    text: bytes
    lost: str = ""
    unseen: bool = False
    hidden: bool = False
    required: bool = True
    forbidden: bool = False
    nth_file: int = 0
    bad: bool = False


_EXPIRED = "%what was delivered there since that backup, and is gone now, is delivered again"


@dataclass(frozen=True)
class Told:
    """What the ledger says to people. Gaps are (partition, begin, end or None); moves (partition, from, to). A person
    who goes on in a later file leaves the rest of the one before, as a gap without an end does."""

    gaps: frozenset[tuple[str, int, int | None]] = frozenset()
    letters: frozenset[tuple[str, int]] = frozenset()
    moves: tuple[tuple[str, int, int], ...] = ()
    abandoned: tuple[tuple[str, int, int], ...] = ()
    repeats: int = 0
    possible: int = 0
    known: frozenset[str] = frozenset()
    restored: bool = False
    doubted: frozenset[str] = frozenset()
    """The partitions of which a gap says that what has expired in the target may be delivered again."""

    @classmethod
    def by(cls, ledger: sqlite3.Connection) -> Told:
        def rows(query: str) -> list[tuple[Any, ...]]:
            return ledger.execute(query).fetchall()

        changes = rows("SELECT partition_key, before, after FROM offset_changes ORDER BY id")
        places = [(key, *_place(before), *_place(after)) for key, before, after in changes]
        left = {(key, offset, None) for key, number, offset, later, _ in places if later > number}
        ((repeats, possible),) = rows("SELECT SUM(duplicates), SUM(possible_duplicates) FROM ranges")
        return cls(
            frozenset(rows("SELECT partition_key, begin_offset, end_offset FROM gaps")) | left,
            frozenset(rows("SELECT partition_key, record_offset FROM dead_letters")),
            tuple((key, begin, end) for key, number, begin, later, end in places if later <= number),
            tuple(rows("SELECT partition_key, begin_offset, planned_end FROM ranges WHERE state = 'abandoned'")),
            repeats or 0,
            possible or 0,
            frozenset(key for (key,) in rows("SELECT DISTINCT partition_key FROM ranges")),
            doubted=frozenset(key for (key,) in rows(f"SELECT partition_key FROM gaps WHERE reason LIKE '{_EXPIRED}'")),
        )

    def and_before(self, older: Told) -> Told:
        """With what a ledger told that was replaced by a backup of it."""
        return Told(
            self.gaps | older.gaps,
            self.letters | older.letters,
            self.moves + tuple(move for move in older.moves if move not in self.moves),
            self.abandoned + tuple(one for one in older.abandoned if one not in self.abandoned),
            self.repeats + older.repeats,
            self.possible + older.possible,
            self.known | older.known,
            self.restored or older.restored,
            self.doubted | older.doubted,
        )

    def accounts_for(self, one: Given) -> bool:
        """Whether somebody was told that this one does not arrive."""
        if (one.partition, one.offset) in self.letters:
            return one.bad
        if any(key == one.partition and begin <= one.offset < end for key, begin, end in self.moves):
            return True
        return bool(one.lost) and (one.hidden or one.partition not in self.known or self._gap_covers(one))

    def _gap_covers(self, one: Given) -> bool:
        """A gap without an end is about everything behind it that is gone, later files included; an empty one says that
        a file has gone, and that nobody knows what came into it since it was looked at last."""
        return any(_covers(begin, end, one) for key, begin, end in self.gaps if key == one.partition)

    def may_repeat(self, one: Given) -> int:
        """How often it may come again because a person moved the offset back, or because a gap says so."""
        moves = sum(key == one.partition and end <= one.offset < begin for key, begin, end in self.moves)
        return moves + (one.partition in self.doubted)

    def was_given_up(self, one: Given) -> bool:
        """Whether it is of a range that a person gave up: what of that was delivered is in no receipt."""
        return any(key == one.partition and begin <= one.offset < end for key, begin, end in self.abandoned)


def _covers(begin: int, end: int | None, one: Given) -> bool:
    if end is None:
        return begin <= one.offset or one.nth_file > 0
    return begin <= one.offset < end or (begin == end <= one.offset and one.unseen)


def _place(position: str | None) -> tuple[int, int]:
    """The number of the file, and the offset in it."""
    place = json.loads(position) if position and position != "null" else {"incarnation": 0, "offset": 0}
    return int(place["incarnation"]), int(place["offset"])


@dataclass
class Verdict:
    """What does not hold, a sentence each."""

    faults: list[str] = field(default_factory=list)
    repeats: list[str] = field(default_factory=list)
    lost: int = 0
    repeated: int = 0
    doubled: int = 0
    """Repeats, and what is there twice because a person wanted it so."""
    foreign: int = 0
    arrived: int = 0


Places = Mapping[str, Mapping[str, Sequence[bytes]]]
"""What stands in the targets, in its order there: by topic or path, and there by queue or file."""


def compared(given: Sequence[Given], arrived: Places, told: Told, ordered: Places, torn: int) -> Verdict:
    """`ordered` are those of the targets in which order is asked for. `torn` messages stand in the targets in parts,
    and are left out of what arrived: that each is there again is told."""
    verdict = Verdict()
    by_target = {
        target: Counter(text for texts in parts.values() for text in texts) for target, parts in arrived.items()
    }
    copies = sum(by_target.values(), Counter[bytes]())
    verdict.arrived = copies.total()
    by_text: dict[bytes, list[Given]] = {}
    for one in given:
        by_text.setdefault(one.text, []).append(one)
    for text, alike in by_text.items():
        _count(verdict, text, alike, [counts[text] for counts in by_target.values() if counts[text]], told)
    for text, count in copies.items():
        if text not in by_text:
            verdict.foreign += count
            verdict.faults.append(f"{text!r} is in the target {count} times and was never given")
    if verdict.repeated > told.possible:
        verdict.faults += verdict.repeats
    if torn > told.repeats + told.possible:
        verdict.faults.append(f"{torn} messages are there in parts, {told.repeats} repeats are told")
    if told.repeats > verdict.doubled + torn:
        verdict.faults.append(f"{told.repeats} repeats are told, {verdict.doubled} are there")
    verdict.faults += _out_of_order(given, ordered, told)
    return verdict


def _count(verdict: Verdict, text: bytes, alike: Sequence[Given], copies: Sequence[int], told: Told) -> None:
    """`copies` are those in each target that has any. What was delivered of a range that was given up may stand in one
    target while the record is settled in another, and so may what a ledger has forgotten since its backup, if the
    document led elsewhere then; in one target it is there once."""
    needed = [one for one in alike if one.required and not told.accounts_for(one)]
    if sum(copies) < len(needed):
        verdict.lost += len(needed) - sum(copies)
        first = needed[sum(copies)]
        why = f" ({first.lost} in the source, and no gap says so)" if first.lost else ""
        verdict.faults.append(f"{_name(first)} is lost{why}")
    allowed = [one for one in alike if not one.forbidden]
    if copies and not allowed:
        verdict.faults.append(f"{_name(alike[0])} was read though the document names its log no more")
        return
    verdict.doubled += max(sum(copies) - len(allowed), 0)
    most = len(allowed) + sum(told.may_repeat(one) for one in allowed)
    elsewhere = max(len(copies) - 1, 0) if told.restored or any(told.was_given_up(one) for one in allowed) else 0
    too_many = max(sum(copies) - most - elsewhere, max(copies, default=0) - most)
    if too_many > 0:
        verdict.repeated += too_many
        verdict.repeats.append(f"{_name(alike[0])} is there {'+'.join(map(str, copies))} times, not {most}")


def _name(one: Given) -> str:
    return f"{one.text[:30]!r} (offset {one.offset} of {one.partition.rpartition('/')[2]})"


def _out_of_order(given: Sequence[Given], arrived: Places, told: Told) -> Iterator[str]:
    """First copies of a partition ascend in each file or queue, unless a person moved its offset back."""
    moved_back = {key for key, begin, end in told.moves if end < begin}
    times = Counter(one.text for one in given)
    place = {
        one.text: (one.partition, number)
        for number, one in enumerate(given)
        if times[one.text] == 1 and one.partition not in moved_back
    }
    seen: set[bytes] = set()
    for name, texts in (part for parts in arrived.values() for part in parts.items()):
        last: dict[str, tuple[int, bytes]] = {}
        for text in texts:
            if text in seen or text not in place:
                continue
            seen.add(text)
            partition, number = place[text]
            if number < last.get(partition, (-1, b""))[0]:
                yield f"{text!r} stands behind {last[partition][1]!r} in {name}"
            last[partition] = (number, text)
