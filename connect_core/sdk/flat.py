"""What a plugin says of the flat documents of RocketMQ Connect (`connector.class`, `max.tasks`, …): which classes of
its connectors mean this system, and which options their keys are.

    FlatClass("FileSinkConnector", "org.apache.rocketmq.connect.file.", "sink", FlatEnd({"filename": option("path")}))

Each of these classes moves records from its system to one other, the hub, or back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol


class FlatWriter(Protocol):
    """Takes what the flat keys of one end mean."""

    @property
    def options(self) -> Mapping[str, Any]:
        """What was put so far."""

    @property
    def given(self) -> Mapping[str, Any]:
        """Every flat key of the document. `name` is always there: a document without one has that of its file."""

    def put(self, key: str, option: str, value: Any) -> None:
        """`key` is where it comes from."""

    def notice(self, text: str) -> None:
        """Something that a person should know, and that stops nobody."""

    def ignore(self, key: str, why: str) -> None:
        """The key has no effect here."""

    def refuse(self, key: str, why: str) -> None:
        """A fault at that key."""


FlatHandler = Callable[[FlatWriter, str, Any], None]
"""Takes a key and its value, which may be text whatever it means."""


def option(name: str) -> FlatHandler:
    """The key is an option of ours as it is."""
    return lambda into, key, value: into.put(key, name, value)


def ignored(why: str) -> FlatHandler:
    return lambda into, key, value: into.ignore(key, why)


def _complete(into: FlatWriter) -> None:
    """Nothing is missing."""


@dataclass(frozen=True)
class FlatEnd:
    """The keys of one end. `must` are those that have to be there, with what for: one of several as `filename|file`;
    `{records}` in the words stands for what the class moves. `complete` puts what no key says."""

    keys: Mapping[str, FlatHandler]
    must: Mapping[str, str] = field(default_factory=dict)
    complete: Callable[[FlatWriter], None] = _complete


class ReachedOffset(NamedTuple):
    """Where a source goes on: the key of a partition of ours, and an offset in it."""

    partition: str
    offset: int


def _no_offsets(
    options: Mapping[str, Any], partition: Mapping[str, Any], position: Mapping[str, Any]
) -> ReachedOffset | None:
    raise ValueError("positions of this class are not known here")


def _fits_all(given: Mapping[str, Any]) -> bool:
    return True


@dataclass(frozen=True)
class FlatClass:
    """A class of connectors. `package` may stand before its `name` in a document. `role` says which end this system is;
    `records` is what its records are called."""

    name: str
    package: str
    role: Literal["source", "sink"]
    end: FlatEnd
    records: str = "records"
    takes_rows: bool = False
    """Whether its sink makes rows of the fields of records."""
    fits: Callable[[Mapping[str, Any]], bool] = _fits_all
    """Whether a document of the class, by its flat keys, means this system: several may have a class of one name."""
    gives_json: bool = False
    """Whether the payloads of its records are JSON: without a schema, or as this option says that they have one."""
    schemas_option: str = ""
    reached: Callable[[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any]], ReachedOffset | None] = _no_offsets
    """By the options of the end, what a partition and its position mean as RocketMQ Connect or Kafka Connect has stored
    them; None for a partition that is not read. May look at the source. Raises ValueError with why that cannot be said.
    """


@dataclass(frozen=True)
class FlatHub:
    """Both ends of the system that is the other end of every class; `rejects` is where rejected records go there, too,
    when `rejects_key` names it."""

    source: FlatEnd
    sink: FlatEnd
    rejects: FlatEnd
    rejects_key: str
