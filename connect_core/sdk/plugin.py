"""What Waybill has to know of a system: a `Plugin`, filled in by the package that brings the system.

    PLUGIN = Plugin("file", "Files of lines", FileSourceOptions, FileSinkOptions, _source, _sink)

Only name and title are needed, and one of the two ends. Everything else has a default: what a plugin does not say, its
system does not have, or nobody can ask it. A plugin is loaded with the options of its system and before any driver: its
functions import what they need when they are called. Options are given to them as a document and its connection have
them, checked. A field of a model with `json_schema_extra={"kind": "path"}` holds a path: `apply` makes it absolute, and
it must be under the configured roots. Other fields stay as they are written. One that is named as a secret (`password`,
`api_token` …) must be a reference in a document.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pydantic import BaseModel

from connect_core.sdk.flat import FlatClass, FlatHub
from connect_core.sdk.groups import ConsumerGroups
from connect_core.sdk.guarantee import Guarantee
from connect_core.sdk.sink import Sink
from connect_core.sdk.source import Source
from connect_core.sdk.templates import OF_MESSAGES, Kind
from connect_core.sdk.values import Json
from connect_core.sdk.whole_topic import WholeTopic

if TYPE_CHECKING:
    import pyarrow as pa

Role = Literal["source", "sink"]
"""Which end of a connector."""
ROLES: tuple[Role, Role] = ("source", "sink")

Ability = Literal["topics", "queues", "pushes", "scan_tells_records", "by_offset", "rereads"]
"""What the system at the other end may have to rely on. A source of `topics`: each partition is of one. Of `queues`:
they have numbers. One that `pushes` (`sdk.source.PushSource`). A sink that `scan_tells_records`: it says of each record
whether it holds it (`sdk.sink.Sink`). One that stores `by_offset` (`sdk.sink.ByOffset`). One that `rereads` what it has
delivered (`sdk.rereading.Rereadable`)."""

RuleTargets = Literal["none", "any"]


@dataclass(frozen=True)
class ConfiguredEnd:
    """One end of a connector: which system it is, and its options. References in these are not resolved."""

    plugin: Plugin
    options: Json

    @property
    def name(self) -> str:
        return self.plugin.name


class Conflict(NamedTuple):
    """What is wrong between parts of a document that are sound by themselves: at which place, as
    `("sink", "file", "path")`, and the words behind it."""

    place: tuple[str | int, ...]
    words: str


class FilesWritten(NamedTuple):
    """Every file that a sink writes, symbolic links resolved. `option` is what names them in a document."""

    option: str
    paths: Sequence[str]


class FilesRead(NamedTuple):
    """`reads` says whether one of these files, symbolic links resolved, is read now or will be when it is there. A
    document states by the option `shared_by` that all hosts share them, where it may; `shared` is what it states."""

    option: str
    reads: Callable[[Sequence[str]], bool]
    shared_by: str = ""
    shared: bool = False


class Expiry(NamedTuple):
    """The other side keeps what waits for a source that is not connected for so long, as `option` says; then it `drops`
    it: "the broker drops a session"."""

    option: str
    seconds: float
    drops: str


class RuleTarget(NamedTuple):
    """What a rule names with `to`. `for_topic` is what that becomes for a record of a topic; `x` stands for whatever
    else a record has. `pattern` is the text of a template with `*` for each of its places; None for a fixed name."""

    text: str
    for_topic: Callable[[str], str]
    pattern: str | None = None


class RunOfTask(NamedTuple):
    """The run of a task, seen from one end of its connector. `say` tells people something of it."""

    role: Role
    connector: str
    task: int
    run: str
    say: Callable[[str], None]


Leaving = Callable[[str], None]
"""Takes why a run ends: `ended`, `paused`, `stopped`, `deleted` or `failed`."""


class ProbeResult(NamedTuple):
    """Whether something is as it should be, and what was seen."""

    ok: bool
    what: str


class RowsLeft(NamedTuple):
    """Of a table whose rows come by a snapshot: about how many are still to come, and about how many it has, as the
    database estimates both."""

    table: str
    left: int
    rows: int
    where: str = ""
    """The condition that they fulfil; empty: all rows of the table are to come."""


class SnapshotWish(NamedTuple):
    """Which rows are to come once more: of these tables, of all where none is named."""

    tables: Sequence[str] = ()
    where: str | None = None
    """Those that fulfil this condition, in the SQL of the server."""


class TypedRecord(NamedTuple):
    """A record typed by hand."""

    value: bytes
    topic: str | None
    tags: str | None
    key: str | None
    headers: tuple[tuple[str, str], ...] = ()


def _fits(source: ConfiguredEnd, sink: ConfiguredEnd) -> Conflict | None:
    return None


def _is_fed(sink: Json, source: Json) -> bool:
    return False


def _nothing_here(options: Json) -> str:
    return ""


def _follows_none(sink: Json) -> bool:
    return False


def _any_target(target: RuleTarget, source: ConfiguredEnd, sink: ConfiguredEnd) -> str:
    return ""


def _no_advice(role: Role, options: Json) -> Iterator[str]:
    return iter(())


def _no_promise(role: Role, options: Json) -> Guarantee | None:
    return None


def _no_findings(role: Role, options: Json) -> Iterator[ProbeResult]:
    return iter(())


def _no_snapshot(options: Json, evidence: Json | None) -> list[RowsLeft]:
    return []


def _cancels_nothing(options: Json, evidence: Json, tables: Sequence[str]) -> list[str]:
    return []


def _no_conditions(evidence: Json) -> list[str]:
    return []


def _as_typed(record: TypedRecord) -> TypedRecord:
    return record


def _none_aside(sink: Json) -> Sequence[tuple[str, int]]:
    return ()


def _nothing(options: Json) -> None:
    return None


@dataclass(frozen=True)
class Plugin:
    """One kind of thing on the other side. A system without a source has no `source_options`; likewise for sinks."""

    name: str
    title: str
    source_options: type[BaseModel] | None = None
    sink_options: type[BaseModel] | None = None
    open_source: Callable[[Any, ExitStack | None], Source] | None = None
    """Takes an instance of the options and the caller's resources; so does `open_sink`."""
    open_sink: Callable[[Any, ExitStack | None], Sink] | None = None
    rule_targets: RuleTargets = "none"
    """What a rule may name with `to`: nothing, or any text for each record (its column `to`), unless `rule_target` has
    something against it. A sink that has to know them before a range is planned is told the fixed names (an injected
    option `rule_topics`) and the patterns of the others (`rule_patterns`)."""
    remote_state: tuple[Role, ...] = ()
    """Which of its two ends are a `sdk.source.RemoteState`."""
    presence: Callable[[Any, RunOfTask], AbstractContextManager[Leaving] | None] | None = None
    """Tells the other side that a task of the live stream is at work, from when it has its lease until the context is
    left, by an instance of an end's options; what the context gives is called before that. Nothing that goes wrong with
    it may concern the run, nor hold it up. None: these options ask for nothing."""
    takes_rows: bool = False
    """Whether its sink is a `sdk.sink.TakesRows`."""
    follows_changes: Callable[[Json], bool] = _follows_none
    """Whether a sink with these options does to its rows what changes say, deletes included."""
    source_fields: frozenset[Kind] = OF_MESSAGES
    """What records of its source may have that filters, rules and templates can name (`sdk.templates`). To name
    anything else is a fault of a document."""
    abilities: frozenset[Ability] = frozenset()
    preload: tuple[str, ...] = ()
    """Modules that nearly every run needs and that take long to load: Airflow's workers load them before they are
    forked. They connect to nothing and start no thread."""

    # ---------------------------------------------------------------------------- what goes together, before any run

    conflict: Callable[[ConfiguredEnd, ConfiguredEnd], Conflict | None] = _fits
    """What is wrong between a source and a sink of which one, or each, is of this system."""
    unwatchable: str = ""
    """Why nobody can look whether the source has something, in words; empty where one can."""
    expiry: Callable[[Json], Expiry | None] = _nothing
    """By the options of a source; None where nothing is dropped, or nobody knows."""
    files_written: Callable[[Json], FilesWritten | None] = _nothing
    """By the options of a sink; None for what writes no files."""
    files_read: Callable[[Json], FilesRead | None] = _nothing
    """By the options of a source; None for what reads no files."""
    on_this_host: Callable[[Json], str] = _nothing_here
    """By the options of an end: the one that leads to something of the driver's host alone, which several connectors
    may share, as a database in a file; empty where there is none. Files that have one writer, and their readers, are
    asked for by `files_written` and `files_read`."""
    feeds: Callable[[Json, Json], bool] = _is_fed
    """Whether a sink with these options writes, under a name that is fixed, what a source of this system with those
    reads and passes on. Files are asked for by `files_written` and `files_read`."""
    rules_conflict: Callable[[Json], Conflict | None] = _nothing
    """What of a sink's options does not go with rules. `rule_topics` among them are the fixed names that rules name,
    those of disabled rules too."""
    event_headers: str = ""
    """In which headers its sink takes the attributes of CloudEvents: the name of a binding
    (`rows.event_headers.BINDINGS`), such as `kafka` for `ce_id`. Empty where its records have no headers, or nobody
    reads these: whole events alone can be written."""
    binary_events_conflict: Callable[[Json], Conflict | None] = _nothing
    """What of a sink's options does not go with events whose attributes are in headers."""
    rule_target: Callable[[RuleTarget, ConfiguredEnd, ConfiguredEnd], str] = _any_target
    """What is wrong with what a rule names, between a source and a sink of this system, in words; empty for nothing.
    Only asked about what `rule_targets` allows."""
    advice: Callable[[Role, Json], Iterator[str]] = _no_advice
    """What a person should know of an end that is sound, a sentence each. References are not resolved."""
    guarantee: Callable[[Role, Json], Guarantee | None] = _no_promise
    """What an end promises, and on what that depends; shown by `check` and `connectors show`. References are not
    resolved. None: nothing is promised."""
    connections: Mapping[str, Json] = field(default_factory=dict)
    """Connections that there are without a file: their options by name."""

    # --------------------------------------------------------------------------------- what is shown of a connector

    unit: str = "records"
    """What the positions of its sources count."""
    set_aside: Callable[[Json], Sequence[tuple[str, int]]] = _none_aside
    """By the options of a sink: files beside its target with bytes that no receipt covered, and how many, as far as
    they are on this machine."""

    # --------------------------------------------------- looking, for people: options with their references resolved

    probe: Callable[[Role, Json], Iterator[ProbeResult]] = _no_findings
    """Whether what an end needs is there, for `check --probe`. May raise a `WaybillError` when it is not. Writes
    nothing that anybody would notice."""
    peek_target: Callable[[Json, int], list[Json]] | None = None
    """What stands last in the target of a sink, so many, oldest first: of each its `value` as bytes, and whatever else
    there is to say. None where nobody can look."""
    peek_topic: Callable[[Json, str, int], list[Json]] | None = None
    """The same of a topic, by the options of a connection."""
    whole_topic: Callable[[Json, str], WholeTopic] | None = None
    """Every record of a topic, by the options of a connection. None where no topic keeps its records."""
    peek_source: Callable[[Any, int], pa.Table] | None = None
    """The newest records of a source, so many, oldest first, in RECORD_SCHEMA, by an instance of its options. Lines of
    a file, all of one, have its path in a column `path` behind these. None where they cannot be looked at without
    taking them."""
    snapshot: Callable[[Json, SnapshotWish], list[str]] | None = None
    """Has rows of tables of a source come among their changes, once more where they came before. Takes the options of
    the source, and gives the names of the tables. None where there is no such thing."""
    cancel_snapshot: Callable[[Json, Json, Sequence[str]], list[str]] = _cancels_nothing
    """Has nothing come any more of what `snapshot` has asked for of these tables, of all where none is named; once more
    it changes nothing. Takes the evidence of the committed position as well. Raises ConfigError where rows are to come
    for which nobody has asked."""
    rows_left: Callable[[Json, Json | None], list[RowsLeft]] = _no_snapshot
    """How far a snapshot has come, by the options of a source and the evidence of a committed position: the tables with
    rows still to come, in their order. None is the evidence of a connector that has not begun."""
    conditions: Callable[[Json], list[str]] = _no_conditions
    """By the evidence at the begin of a range: of which tables rows may be in it that fulfil a condition, and which."""
    typed: Callable[[TypedRecord], TypedRecord] = _as_typed
    """A record typed by hand, as the source would make it."""

    groups: ConsumerGroups | None = None
    """None where there are no consumer groups."""

    # ------------------------------------------------------------------- the flat documents of RocketMQ Connect

    flat: tuple[FlatClass, ...] = ()
    """Classes of connectors of which this system is one end."""
    flat_hub: FlatHub | None = None
    """Of the system that is their other end."""

    def options(self, role: Role) -> type[BaseModel] | None:
        """The model that describes and checks the options of one end; None where there is no such end."""
        return self.source_options if role == "source" else self.sink_options
