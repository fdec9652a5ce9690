"""From a stored document to what a run works with: options with their connection, absolute paths, known addresses.

Called by the driver before a run. Secrets stay references: whoever builds a source or a sink reveals them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from connect_core.config import errors_sinks
from connect_core.config.checking import injected_values
from connect_core.config.document import ConnectorDocument
from connect_core.config.document_parts import Endpoint
from connect_core.config.endpoints import End, Surroundings, read_end
from connect_core.config.errors_sinks import read_errors_sink
from connect_core.config.faults import fault_at
from connect_core.config.letter_keys import letter_key
from connect_core.config.option_models import find, policy_fields
from connect_core.config.references import STACK_FORMS, resolve_stack
from connect_core.config.registries import unallowed_registries
from connect_core.config.row_types import last_rows
from connect_core.config.ruling import are_all_elsewhere, pipeline_of, rule_patterns, rule_topics
from connect_core.config.settings import Settings
from connect_core.config.written import Written
from connect_core.errors import ConfigError, Fault, Unreachable
from connect_core.rows.types import as_written
from connect_core.sdk.plugin import ROLES, Role
from connect_core.sdk.values import Json
from connect_core.work import LetterKey, RejectLimit, Side


@dataclass(frozen=True)
class Resolved:
    """A connector ready to run. `tolerance` is how many records of a partition a run may reject, below zero any number
    of them; `connections` is what the files of its connections said, by end, references not resolved."""

    name: str
    uid: str
    source: Side
    sink: Side
    pipeline: Json
    tasks: int
    range_records: int
    range_bytes: int
    tolerance: int
    on_data_loss: str
    reject_limit: RejectLimit | None = None
    records_per_second: int = 0
    window_s: float = 0.0
    assignment: str = "even"
    connections: Json = field(default_factory=dict)
    errors_sink: Side | None = None
    """A second target of dead letters, beside the ledger."""
    errors_headers: bool = False
    """Whether records there say where they were read and why they were rejected."""
    encrypt: LetterKey | None = None
    """With which key dead letters are kept."""
    evolved: Json | None = None
    """Where runs evolve its document (`parse.unknown: evolve`): the fields that they have added or widened."""


def resolve(
    document: ConnectorDocument,
    home: Path | None,
    settings: Settings,
    uid: str,
    pinned: Mapping[str, Json] | None = None,
) -> Resolved:
    """Connections are those of the home's folder, unless something was planned with what they said before (`pinned`, as
    `Resolved.connections`) and that is another place. Raises ConfigError with every fault, or Unreachable when the
    local stack is needed and not running."""
    where = f"connector {document.name}"
    sides: dict[Role, Side] = {}
    said: Json = {}
    faults: list[Fault] = []
    injected = _injected(document, settings, uid)
    around = Surroundings(home, settings.files_roots, settings.allowed_hosts, pinned=pinned or {})
    for role in ROLES:
        endpoint: Endpoint = getattr(document, role)
        end = read_end(role, endpoint.system, endpoint.options, around, injected, Written({}, where))
        faults += end.faults
        sides[role] = Side(end.system, end.options)
        if end.connection is not None:
            said[role] = end.connection
    second = _errors_sink(document, around, injected, where)
    if second:
        faults += second.faults
        if second.connection is not None:
            said[errors_sinks.PINNED] = second.connection
    registries = document.model_dump(include={"parse": {"registry"}, "encode": {"registry"}})
    faults += [fault_at(*wrong, None) for wrong in unallowed_registries(registries, settings.allowed_hosts)]
    if faults:
        raise ConfigError("The connector cannot run", where=where, faults=tuple(faults))
    return Resolved(
        name=document.name,
        uid=uid,
        source=_located(sides["source"], home),
        sink=_located(sides["sink"], home),
        pipeline=pipeline_of(document),
        tasks=document.tasks,
        range_records=document.limits.range_records,
        range_bytes=document.limits.range_bytes,
        tolerance=document.errors.tolerance,
        on_data_loss=document.errors.on_data_loss,
        reject_limit=_reject_limit(document),
        records_per_second=document.limits.records_per_second,
        window_s=document.schedule.window or 0.0,
        assignment=document.assignment,
        connections=said,
        errors_sink=_located(Side(second.system, second.options), home) if second else None,
        errors_headers=document.errors.headers != "none",
        encrypt=letter_key(document.errors.encrypt),
        evolved=(document.parse.evolved or {}) if document.parse.evolves else None,
    )


def resolve_source(document: ConnectorDocument, home: Path | None, settings: Settings) -> Side:
    """The source alone, for those who do not look at the target. Raises as `resolve`."""
    where, around = f"connector {document.name}", Surroundings(home, settings.files_roots, settings.allowed_hosts)
    wanted, injected = document.source, _injected(document, settings, "")
    end = read_end("source", wanted.system, wanted.options, around, injected, Written({}, where))
    if end.faults:
        raise ConfigError("The source cannot be read", where=where, faults=tuple(end.faults))
    return _located(Side(end.system, end.options), home)


def _injected(document: ConnectorDocument, settings: Settings, uid: str) -> dict[str, object]:
    """What ends are told of the connector."""
    return {
        **injected_values(uid, document.name, document.tasks),
        "send_timeout_s": settings.send_timeout_s,
        "roots": [os.path.realpath(root) for root in settings.files_roots],
        "sink_system": document.sink.system,
        "rule_topics": rule_topics(document),
        "rule_patterns": rule_patterns(document.rules),
        "only_rule_topics": are_all_elsewhere(document.rules),
        "row_fields": as_written(rows) if (rows := last_rows(document)) else {},
    }


def _errors_sink(
    document: ConnectorDocument, around: Surroundings, injected: Mapping[str, object], where: str
) -> End | None:
    wanted = document.errors.sink
    if wanted is None:
        return None
    return read_errors_sink(wanted.system, wanted.options, around, injected, Written({}, where))


def _reject_limit(document: ConnectorDocument) -> RejectLimit | None:
    budget = document.errors.budget
    return RejectLimit(budget.records, budget.share, budget.window) if budget else None


def with_policies(role: Role, pinned: Side, now: Side) -> Side:
    """An end as an older revision has it, with the policies of the present one: a person who is told to change one must
    not have to finish what is open first."""
    model = find(role, pinned.system)
    if model is None or pinned.system != now.system:
        return pinned
    policies = policy_fields(model)
    kept = {name: value for name, value in pinned.options.items() if name not in policies}
    return Side(pinned.system, kept | {name: now.options[name] for name in policies if name in now.options})


def _located(side: Side, home: Path | None) -> Side:
    return Side(side.system, resolve_stack(side.options, lambda field: stack_field(home, field)))


def stack_field(home: Path | None, field: str) -> str:
    """What `${stack:FIELD}` stands for. `Unreachable` when no stack of this home is running."""
    from connect_core import stack

    running = stack.load(home) if home else None
    if running is None:
        raise Unreachable(
            "The local stack is not running",
            where=f"${{stack:{field}}}",
            next_step="Start it with `waybill dev up`, or name the servers in conf/connections/main.yaml",
        )
    if field == "name_servers":
        return running.name_servers
    if field == "mqtt_port":
        return str(running.mqtt_port)
    raise ConfigError(f"${{stack:{field}}} is not known", next_step=f"There are {STACK_FORMS}")
