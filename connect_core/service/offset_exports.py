"""Committed offsets of a connector as a value that another ledger takes over: what the source saw at each goes along,
so that one that has changed meanwhile is noticed as after any other pause (delivery rule 10)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from connect_core import systems
from connect_core.config import revealed
from connect_core.config.faults import model_faults
from connect_core.config.units import show_count
from connect_core.config.written import Written, read_file
from connect_core.errors import ConfigError
from connect_core.sdk.records import Partition
from connect_core.sdk.source import PushSource, Source
from connect_core.sdk.values import LIVE, Json, Position
from connect_core.service.offsets import Agree, Move, assignment_of, moved_together, partition_of, require_seen
from connect_core.service.opened import AtWork, Opened, Say

FORMAT = 1


class ExportedOffset(BaseModel):
    """Of one partition."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    partition: str
    incarnation: int = Field(ge=0, lt=1 << 63)
    offset: int = Field(ge=0, lt=1 << 63)
    evidence: dict[str, Any]


class ExportedOffsets(BaseModel):
    """Of one connector, as `exported` gives them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    version: int = Field(ge=FORMAT, le=FORMAT)
    connector: str
    offsets: tuple[ExportedOffset, ...] = Field(min_length=1)

    @field_validator("offsets")
    @classmethod
    def _each_once(cls, given: tuple[ExportedOffset, ...]) -> tuple[ExportedOffset, ...]:
        if len({one.partition for one in given}) < len(given):
            raise ValueError("a partition is there twice")
        return given


def exported(opened: Opened, name: str, say: Say) -> Json:
    """Of the live stream. `say` is told of open ranges: another ledger knows nothing of what they delivered."""
    connector = opened.ledger.connector(name)
    found = [
        ExportedOffset(
            partition=one.partition.key,
            incarnation=one.position.incarnation,
            offset=one.position.offset,
            evidence=dict(one.position.evidence),
        )
        for one in opened.ledger.offsets(connector.uid, LIVE)
    ]
    if not found:
        raise ConfigError("Nothing is committed yet", where=f"connector {name}")
    if still_open := opened.ledger.open_ranges(connector.uid, LIVE, [Partition(one.partition) for one in found]):
        amount = show_count(len(still_open), "range")
        say(f"{amount} of {name} not settled: what was delivered of it would be delivered again")
    return ExportedOffsets(version=FORMAT, connector=name, offsets=tuple(found)).model_dump()


def read_exported(file: Path) -> ExportedOffsets:
    """Raises ConfigError with every fault."""
    documents = read_file(file)
    written = documents[0] if len(documents) == 1 else Written(None, str(file))
    try:
        return ExportedOffsets.model_validate(written.data)
    except ValidationError as error:
        faults = tuple(model_faults(error, ExportedOffsets, written))
        raise ConfigError("These are no exported offsets", where=str(file), faults=faults) from None


def imported(
    opened: AtWork,
    name: str,
    taken: ExportedOffsets,
    *,
    why: str,
    agree: Agree,
    say: Say,
    preview: bool = False,
    seen: Mapping[str, int | None] | None = None,
) -> Json:
    """Commits them, all or none; other partitions stay where they are. Raises ConfigError where the source is
    not what it was when they were exported. With `preview` nobody is asked and nothing is committed. `seen`
    are offsets before, as a preview has told them: raises as `require_seen` does."""
    connector = opened.ledger.connector(name)
    assignment = assignment_of(opened, connector)
    after = {
        partition_of(assignment, one.partition): Position(one.incarnation, one.offset, one.evidence)
        for one in taken.offsets
    }
    before = opened.ledger.positions(connector.uid, LIVE, list(after))
    require_seen(connector, before, seen)
    with ExitStack() as resources:
        source = systems.source(revealed(opened.resolved(connector).source), resources)
        try:
            _require_the_same(source, after, name)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ConfigError(
                f"The evidence is not what this source exports: {type(error).__name__}",
                where=f"connector {name}",
                next_step="Import what was exported, as it was printed",
            ) from None
    repeated: Json = {}
    for part, wanted in after.items():
        at = before[part]
        repeats = opened.ledger.repeats(connector.uid, LIVE, part, at, wanted)
        repeated[part.key] = vars(repeats)
        if not preview:
            agree(Move(name, part.key, at.offset if at else None, wanted.offset, repeats))
    told = {
        "connector": name,
        "before": {part.key: at.offset if at else None for part, at in before.items()},
        "after": {part.key: at.offset for part, at in after.items()},
        "kept": [one.key for one in _others(list(assignment.shares), after)],
    }
    if preview:
        return told | {"repeats": repeated}
    moved_together(opened, connector, assignment, before, after, why=why, kind="import", still=lambda _: None, say=say)
    return told


def _others(known: Sequence[Partition], taken: dict[Partition, Position]) -> list[Partition]:
    return [one for one in known if one not in taken]


def _require_the_same(source: Source, wanted: dict[Partition, Position], name: str) -> None:
    """Raises ConfigError unless reading would continue at each of these, without a gap."""
    if isinstance(source, PushSource):
        raise ConfigError(
            "The source sends each record once and keeps itself what it has sent: its offsets cannot be taken over",
            where=f"connector {name}",
        )
    whole = source.available_offsets({part: replace(at, offset=0) for part, at in wanted.items()})
    for part, seen in source.available_offsets(wanted).items():
        where = f"connector {name}, partition {part.key}"
        if failure := seen.failure or whole[part].failure:
            raise failure.as_error()
        at = wanted[part]
        if seen.gaps or (seen.incarnation, seen.begin) != (at.incarnation, at.offset):
            raise ConfigError(
                f"Reading would not continue at offset {at.offset:,}: the source is not what it was",
                where=where,
                next_step=f"Choose an offset: waybill offsets set {name} {part.key} OFFSET",
            )
        if at.offset > whole[part].end or source.align_offset(part, seen, at.offset) != at.offset:
            raise ConfigError(
                f"Nothing begins at offset {at.offset:,} of the source, which ends at {whole[part].end:,}",
                where=where,
                next_step="Import what was exported, as it was printed",
            )
