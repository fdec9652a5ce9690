"""What travels between driver, engine and worker: lanes, what comes back of them, and who runs them.

No system sees any of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias, runtime_checkable

from connect_core.errors import Failure
from connect_core.sdk.sink import Scan
from connect_core.sdk.values import (
    Attempt,
    FloorMove,
    Gap,
    Json,
    OpenRange,
    Reject,
)

if TYPE_CHECKING:
    from connect_core.sdk.scan import ScanResult

_COUNT = {"counts": "records"}
"""Marks the fields of a receipt that are `COUNTS`."""


@dataclass(frozen=True)
class Receipt:
    """What happened to a range. `read == filtered + rejected + passed`, `emitted == delivered + deduplicated`. The
    first are records, the second their outputs: `emitted` is more than `passed` only where rules make several of one.
    `deduplicated` outputs were found in the target and not written again.

    A `reconstructed` one was made from what the target holds, because the source could not give the records again: None
    stands for a count that nobody can know, and its digests are empty.

    `floors` are those of targets that were looked through or written for this range, and no others. `covered` is how
    many positions of the range are accounted for, added up record by record while it was read: those of what was read,
    and those that held nothing. Settle compares it with `end - begin`. None where nobody knows: in receipts that were
    reconstructed, or settled before it was stored.
    """

    begin: int
    end: int
    read: int | None = field(metadata=_COUNT)
    absent: int | None = field(metadata=_COUNT)
    filtered: int | None = field(metadata=_COUNT)
    rejected: int | None = field(metadata=_COUNT)
    passed: int = field(metadata=_COUNT)
    emitted: int = field(metadata=_COUNT)
    delivered: int = field(metadata=_COUNT)
    deduplicated: int = field(metadata=_COUNT)
    duplicates: int = field(metadata=_COUNT)
    possible_duplicates: int = field(metadata=_COUNT)
    bytes_read: int | None
    bytes_written: int
    seconds: float
    digest_read: str
    digest_sent: str
    where: Json
    evidence: Json
    floors: tuple[FloorMove, ...]
    rejects: tuple[Reject, ...] = ()
    gaps: tuple[Gap, ...] = ()
    reconstructed: bool = False
    covered: int | None = None

    def identity_faults(self) -> list[str]:
        """The identities of this receipt that do not hold; empty for a sound one."""
        faults = []
        if self.read is None or self.filtered is None or self.rejected is None:
            if not self.reconstructed:
                faults.append("a count is missing")
        elif self.read != self.filtered + self.rejected + self.passed:
            faults.append(
                f"read {self.read} != filtered {self.filtered} + rejected {self.rejected} + passed {self.passed}"
            )
        if self.emitted != self.delivered + self.deduplicated:
            faults.append(f"emitted {self.emitted} != delivered {self.delivered} + deduplicated {self.deduplicated}")
        return faults + self._coverage_faults()

    def _coverage_faults(self) -> list[str]:
        """A record takes one position at least, whatever positions count."""
        if self.end < self.begin:
            return [f"end {self.end} is before begin {self.begin}"]
        length, met = self.end - self.begin, (self.read or 0) + (self.absent or 0)
        if self.covered is not None and self.covered != length:
            return [f"{self.covered} positions are accounted for, not the {length} from {self.begin} to {self.end}"]
        return [f"{met} records in {length} positions, {self.begin} to {self.end}"] if met > length else []


COUNTS = tuple(one.name for one in fields(Receipt) if one.metadata == _COUNT)
"""The fields of a receipt that count records or their outputs, in their order: those that add up. In the ledger each is
a column of that name."""


SEALED_MARK = b"\x00waybill sealed letter 1\x00"
"""What the bytes of a dead letter that is encrypted begin with."""


class LetterPlace(NamedTuple):
    """What tells one rejection from all others."""

    uid: str
    stream: str
    partition_id: str
    incarnation: int
    offset: int
    ordinal: int
    stage: str


class LetterKey(NamedTuple):
    """A key of dead letters that are encrypted: a reference, which is read where they are, and the id of the key that
    is meant."""

    reference: str
    key_id: str


class Letter(NamedTuple):
    """A rejected record that is sent again: its number, and what it was as it was read (`Reject`). `added` are headers
    that it gets on its way, behind its own. One that is encrypted is so until it is read, and was so at its `place`."""

    id: int
    value: bytes
    topic: str | None
    attributes: Json | None
    place: LetterPlace
    added: tuple[tuple[str, str], ...] = ()


class Letters(NamedTuple):
    """What a range holds that replays dead letters: all of them with a number before `upto`, in order. What is behind
    that is for the next one. `refused` are the numbers of those that do not open with their key."""

    rows: tuple[Letter, ...]
    upto: int
    refused: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Outcome:
    """What a lane says of one range: a receipt, or why there is none. A receipt with a `failure` closes the range
    before the record that failed. `clean` is False when something may have been written that no receipt tells of.
    `apart` is True when the failure concerns this partition alone, whose records could not be read or shaped or were
    rejected, so that ranges of others go on; else it is one of the target or of the lane, which ends there. `wanted`
    are targets that the range has not pinned: it ends before the first record that goes to one (`sdk.sink.Growing`),
    and neither this attempt nor another one has written that, or what is behind it. `needs` are fields that the range's
    revision does not have, or not so wide: it ends before the first record that needs one. `reached`: see
    `sdk.source.Seeking`."""

    range_id: int
    receipt: Receipt | None
    failure: Failure | None = None
    clean: bool = True
    apart: bool = False
    wanted: tuple[str, ...] = ()
    needs: Json | None = None
    reached: int = 0


@dataclass(frozen=True)
class Side:
    """One end of a connector: the system's name and its options, as in the document (references not resolved)."""

    system: str
    options: Json


class Pace(NamedTuple):
    """How fast a lane may go, 0: as fast as it can. `saved_s` is time that went by unused before the lane began: what
    could have been moved in it may be moved in addition."""

    records_per_second: float = 0.0
    saved_s: float = 0.0


UNPACED = Pace()


class RejectLimit(NamedTuple):
    """How many records of each partition may be rejected in `window_s`: so many, and such a share of those read. None:
    any."""

    records: int | None
    share: float | None
    window_s: float


class RefusedField(NamedTuple):
    """A field by its place (`widening.leaves`) that something does not take with this type, or a wider one, and why."""

    place: str
    type: str
    why: str


class Evolving(NamedTuple):
    """Of a document that runs evolve (`parse.unknown: evolve`): the fields that runs have added or widened, as a
    document has fields, and those that it cannot have."""

    evolved: Json
    refused: tuple[RefusedField, ...] = ()


class ReadLately(NamedTuple):
    """What receipts of a time say of a partition."""

    read: int = 0
    rejected: int = 0


@dataclass(frozen=True)
class Lane:
    """All that a worker needs to know. Travels as bytes in a column, never in a closure or a command line.

    `lock_paths` are the files that prove that somebody of this epoch is alive (delivery rule 3), one for each lease the
    run holds: the driver makes them, a lane shares their locks and refuses when one is not there any more. `quantum_s`
    counts from the lane's own start and is cut by `deadline_ns`; live ranges end before it when nothing came for
    `idle_timeout_s`, those of a source that pushes also when nothing came at all for `first_record_timeout_s`. `pace`
    is the lane's share of what its connector may move. `tolerance` is how many records of a partition a run may reject,
    below zero any number; `rejected` how many it has, by id of the partition, in receipts that are settled. `holder` is
    who has the lease. `letters` are what its ranges read, by id of the partition, where they replay dead letters.
    `reject_limit` is what may be rejected over runs, `lately` what was in that time, by id of the partition. With an
    `encrypt` key its rejects are encrypted; `decrypt` are the keys with which its `letters` may be, the newest first.
    With `evolving` a range ends before a record that the document can be evolved for; without, it is rejected.
    """

    connector: str
    uid: str
    task: int
    epoch: int
    source: Side
    sink: Side
    pipeline: Json
    tolerance: int
    ranges: tuple[OpenRange, ...]
    quantum_s: float
    boot_id: str
    deadline_ns: int
    lock_paths: tuple[str, ...]
    code: str
    idle_timeout_s: float = 0.0
    first_record_timeout_s: float = math.inf
    pace: Pace = UNPACED
    rejected: Mapping[str, int] = field(default_factory=dict)
    holder: str = ""
    letters: Mapping[str, Letters] | None = None
    reject_limit: RejectLimit | None = None
    lately: Mapping[str, ReadLately] = field(default_factory=dict)
    encrypt: LetterKey | None = None
    decrypt: tuple[LetterKey, ...] = ()
    evolving: Evolving | None = None

    @property
    def attempt(self) -> Attempt:
        return Attempt(self.uid, self.epoch, self.deadline_ns, self.holder)


@dataclass(frozen=True)
class ScanTask:
    """A scan of the targets of `sink`, for the process that runs it."""

    sink: Side
    scan: Scan
    code: str


class Engine(Protocol):
    """Where lanes run."""

    @property
    def described(self) -> str:
        """Kind, Spark and Python, for the run's row: at most 64 characters."""

    def execute(self, lanes: Sequence[Lane]) -> list[Outcome]:
        """Runs all lanes side by side. Raises EngineFailed when any did not return: what it wrote is then unknown."""

    def scan(self, task: ScanTask) -> dict[int, ScanResult]:
        """Runs one scan."""


ToStop: TypeAlias = "Callable[[], bool]"


def never() -> bool:
    """Lanes end by themselves."""
    return False


@runtime_checkable
class Starting(Protocol):
    """An engine that needs time to start a worker, and whose workers stay for one lane after the other."""

    def started(self, lanes: int, to_stop: ToStop = never) -> AbstractContextManager[Engine]:
        """Driver, before the deadline of the first lanes is set: the engine with as many workers, for executions of at
        most so many lanes. After one that raised nothing more is executed. While lanes are at work it is asked now and
        then whether they are `to_stop`: then their quantum ends. Leaving the context ends the workers."""


@runtime_checkable
class OnOtherHosts(Protocol):
    """An engine whose workers may be on other hosts than the driver."""

    @property
    def elsewhere(self) -> bool:
        """Whether one is: then no lock tells that its lanes have ended (delivery rule 3)."""

    def read_clocks(self) -> None:
        """Driver, before it renews its lease for lanes: asks workers on other hosts what their clocks read, where that
        is known of before only. In this order a driver that stood still in between sends lanes that refuse: their
        hosts' clocks have gone on. Raises EngineFailed when one does not answer."""
