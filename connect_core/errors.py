"""The error tree: one class for each way to recover.

Every message says what happened, where (connector, partition, offset, field) and what to do next. No secret and no
payload ever goes into one: what references stand for is masked when an error is made (`masking`).

    WaybillError
    ├── Retriable            1  the same thing may work when it is tried again
    │   ├── Unreachable      3  something it needs is not there or does not answer
    │   │   ├── PartitionUnreachable  something that one partition alone needs; others may be there
    │   │   └── Missing          who has it answers, and says that it is not there
    │   ├── WireFormatError  1  a peer sent bytes that are not the protocol
    │   └── EngineFailed     1  an execution did not return cleanly: what was written is looked up by the next attempt
    ├── ConfigError          2  the document or the command line is wrong; carries every fault at once
    ├── LeaseHeld            4  somebody else works on this task or writes to this target
    │   └── Fenced           4  this attempt lost its lease: a newer one has taken over
    ├── DataError            5  the data is not what it should be; trying again does not help, a person decides
    │   ├── OffsetGone          records between the committed offset and what the source still has are gone
    │   ├── TargetChanged       what stood in the target is not there any more, or is something else
    │   │   └── RowsLost        the target says itself that it has fewer rows of a partition than were settled
    │   ├── PipelineChanged     an open range was planned by code that gives other results
    │   ├── ContentRefused      a file holds something else than what is read of it (compressed or binary bytes)
    │   └── TooManyRejects      more records were rejected than the document tolerates
    └── Fatal                6  it failed for good
        ├── Refused             a server said no (permission, illegal name)
        ├── VersionMismatch     two parts that must be of one version are not
        └── ContractBroken      the code of a system does not do what the SDK asks of it: its package is to be mended

The number is the exit code of the `waybill` command.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from connect_core.masking import mask_secrets
from connect_core.origin import Origin, origin_of


class WaybillError(Exception):
    """`what` happened, `where`, and the `next_step` a person should take (a sentence each, without a full stop)."""

    exit_code: ClassVar[int] = 6

    def __init__(self, what: str, *, where: str = "", next_step: str = "") -> None:
        self.what, self.where, self.next_step = (mask_secrets(str(text)) for text in (what, where, next_step))
        super().__init__(self.what, self.where, self.next_step)
        self.aside: Mapping[str, Failure] = {}
        """By key, the partitions that stopped while everything else was moved to its end: the reasons of this error.
        Not carried over process borders."""

    def __str__(self) -> str:
        place = f" [{self.where}]" if self.where else ""
        advice = f". {self.next_step}" if self.next_step else ""
        return f"{self.what}{place}{advice}"

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.what, self.where, self.next_step))


def _rebuild(kind: type[WaybillError], what: str, where: str, next_step: str) -> WaybillError:
    return kind(what, where=where, next_step=next_step)


class Retriable(WaybillError):
    exit_code = 1


class Unreachable(Retriable):
    exit_code = 3


class PartitionUnreachable(Unreachable):
    @classmethod
    def of(cls, error: Unreachable) -> PartitionUnreachable:
        return cls(error.what, where=error.where, next_step=error.next_step)


class Missing(Unreachable):
    pass


class WireFormatError(Retriable):
    pass


class EngineFailed(Retriable):
    pass


class LeaseHeld(WaybillError):
    exit_code = 4


class Fenced(LeaseHeld):
    pass


class DataError(WaybillError):
    exit_code = 5


class OffsetGone(DataError):
    pass


class TargetChanged(DataError):
    pass


class RowsLost(TargetChanged):
    pass


class PipelineChanged(DataError):
    pass


class ContentRefused(DataError):
    pass


class TooManyRejects(DataError):
    pass


class Fatal(WaybillError):
    exit_code = 6


class Refused(Fatal):
    pass


class VersionMismatch(Fatal):
    pass


class ContractBroken(Fatal):
    pass


@dataclass(frozen=True)
class Fault:
    """One thing wrong with a document: the dotted `path` of the field and what is wrong with it."""

    path: str
    message: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", mask_secrets(self.message))

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class ConfigError(WaybillError):
    """All faults of one document at once; `where` names the file."""

    exit_code = 2

    def __init__(self, what: str, *, where: str = "", next_step: str = "", faults: tuple[Fault, ...] = ()) -> None:
        super().__init__(what, where=where, next_step=next_step)
        self.faults = faults

    def __str__(self) -> str:
        return "\n  ".join([super().__str__(), *map(str, self.faults)])

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild_config, (self.what, self.where, self.next_step, self.faults))


def _rebuild_config(what: str, where: str, next_step: str, faults: tuple[Fault, ...]) -> ConfigError:
    return ConfigError(what, where=where, next_step=next_step, faults=faults)


@dataclass(frozen=True)
class Failure:
    """An error that crossed a process border: what is left of it is its class and its words.

    `kind` names its class, for people; `family` the class of this tree that it belongs to, which says how to recover.
    """

    kind: str
    what: str
    where: str = ""
    next_step: str = ""
    family: str = "Retriable"

    def __post_init__(self) -> None:
        for name in ("what", "where", "next_step"):
            object.__setattr__(self, name, mask_secrets(str(getattr(self, name))))

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        if isinstance(error, WaybillError):
            family = next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == __name__)
            return cls(type(error).__name__, error.what, error.where, error.next_step, family)
        kind, said, origin = type(error).__name__, str(error) or repr(error), origin_of(error)
        if not origin.system:
            return cls(kind, said)
        return cls(kind, said, f"system {origin.system}, {origin.place}", _to_mend(origin))

    @classmethod
    def unexpected(cls, error: Exception, doing: str, where: str = "") -> Failure:
        """Of an error that is none of this tree, raised by a record or a partition. Its own words are left out: they
        may quote the record."""
        if isinstance(error, WaybillError):
            return cls.of(error)
        origin = origin_of(error)
        what = f"an unexpected error in {doing}, at {origin.place}"
        return cls(type(error).__name__, what, where, _to_mend(origin))

    @property
    def words(self) -> str:
        """Of an error that is none of this tree, and that nobody has caught: what the last line of a command says."""
        told = f"{self.kind}: {self.what}"
        if not self.next_step:
            return f"Unexpected error, please report it: {told}"
        return f"Unexpected error: {told} [{self.where}]. {self.next_step}"

    def as_error(self) -> WaybillError:
        """The error again, as its family. A class that is not of this tree is `Retriable`: nobody knows better."""
        kind = _TREE.get(self.family, Retriable)
        foreign = self.family == "Retriable" and self.kind not in _TREE
        what = f"{self.kind}: {self.what}" if foreign else self.what
        return kind(what, where=self.where, next_step=self.next_step)


def _to_mend(origin: Origin) -> str:
    if origin.system:
        return f"The package {origin.package} brings system {origin.system}: its authors can correct this"
    return "This is a defect: report it with this place"


def _tree(root: type[WaybillError]) -> dict[str, type[WaybillError]]:
    found = {root.__name__: root}
    for child in root.__subclasses__():
        found |= _tree(child)
    return found


_TREE = _tree(WaybillError)
