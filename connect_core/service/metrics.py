"""Figures of every connector for metrics: what the ledger knows now. No source is asked, so whoever looks every few
seconds disturbs nobody; and nothing is lost with a worker, for the ledger has counted it.

`CATALOGUE` says which metrics there are; a test compares docs/metrics.md with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from connect_core import __version__
from connect_core.config.flat import hub
from connect_core.ledger import ConnectorFigures, StreamSums, replays_letters
from connect_core.sdk.values import ERRORS_SINK, LIVE, Json
from connect_core.service import callers
from connect_core.service.flat_connectors import role_of
from connect_core.service.lag import lag_unit
from connect_core.service.opened import ledger_exists, reading
from connect_core.systems import SYSTEMS

DETAILED = 500
"""So many connectors, the oldest ones, have metrics of their own."""
OTHERS = "(others)"
"""The label of the sum of those behind them. No connector can have this name."""

STATES = ("running", "paused", "stopped")
STREAMS = ("live", "backfill", "dead-letters", "errors-sink")
STAGES = {"read", "parse", "transform", "encode", "write"}
OTHER = "other"
"""Stands for stages and systems that are not known here, so that nobody can make labels without end."""
OUTCOMES = ("done", "failed", "lost")


@dataclass(frozen=True)
class Metric:
    """One family. `name` is without the prefix `waybill_`, unless it is one of RocketMQ Connect's. What `adds_up` is
    also there for OTHERS."""

    name: str
    kind: Literal["counter", "gauge"]
    help: str
    labels: tuple[str, ...] = ("connector",)
    adds_up: bool = True


@dataclass(frozen=True)
class Family:
    """A metric with its samples: label values, in the order of its labels, and the value."""

    metric: Metric
    samples: Sequence[tuple[tuple[str, ...], float]]


_FIELDS = {
    "read": ("records_read_total", "Records that were read from the source"),
    "filtered": ("records_filtered_total", "Records that filters and steps left out"),
    "rejected": ("records_rejected_total", "Records that were rejected: they are dead letters"),
    "delivered": ("records_delivered_total", "Records that were written to the target"),
    "deduplicated": ("records_deduplicated_total", "Records found already in the target, and not written again"),
    "duplicates": ("records_duplicates_total", "Surplus copies that were found in the target"),
    "possible_duplicates": ("records_possible_duplicates_total", "Records that may be in the target twice"),
    "bytes_read": ("bytes_read_total", "Bytes that were read from the source"),
    "bytes_written": ("bytes_written_total", "Bytes that were written to the target"),
    "seconds": ("range_seconds_total", "Seconds that workers spent on the settled ranges"),
}
_PEER = "rocketmq_connect_"
_SKIPPED = "total_records_skipped_total"
_PEERS = {
    "source": {"read": "source_record_poll_total", "delivered": "source_record_write_total"},
    "sink": {"read": "sink_record_read_total", "delivered": "sink_record_send_total"},
}


def _catalogue() -> Iterator[Metric]:
    of_stream = ("connector", "stream")
    yield Metric("build_info", "gauge", "Always 1; the version that answers", ("version",))
    yield Metric("connectors", "gauge", "Connectors by what they shall do", ("state",))
    yield Metric("connectors_summed", "gauge", f"Connectors that are in the sum {OTHERS} alone", ())
    yield Metric(
        "connector_info", "gauge", "Always 1; from which system to which", ("connector", "source", "sink"), False
    )
    yield Metric("connector_paused", "gauge", "1 where the ledger says paused or stopped, else 0", adds_up=False)
    for name, words in _FIELDS.values():
        yield Metric(name, "counter", f"{words}, by settled receipts", of_stream)
    yield Metric("receipts", "gauge", "Receipts that the ledger keeps; those of a window are merged", of_stream)
    yield Metric(
        "newest_receipt_timestamp_seconds", "gauge", "When the newest receipt was settled", of_stream, adds_up=False
    )
    yield Metric(
        "dead_letters_total", "counter", "Dead letters, by the stage that rejected first", ("connector", "stage")
    )
    yield Metric("runs_total", "counter", "Runs of tasks that are over, by outcome", ("connector", "outcome"))
    yield Metric("runs_running", "gauge", "Runs of tasks that have not said how they ended")
    yield Metric(
        "lag",
        "gauge",
        "What the newest ended run of each task saw at the source and left there",
        ("connector", "unit"),
    )
    yield Metric(
        "newest_run_failed", "gauge", "1 where the newest ended run of a task of the live stream failed or was lost"
    )
    yield Metric(
        "newest_run_seconds", "gauge", "How long the newest ended run took, of its tasks the longest", adds_up=False
    )
    yield Metric("newest_run_end_timestamp_seconds", "gauge", "When a run of the live stream last ended", adds_up=False)
    yield Metric("open_ranges", "gauge", "Ranges that are planned and not settled")
    yield Metric("gaps_total", "counter", "Gaps: records that were gone, and notices of what cannot be known")
    yield Metric("partitions_held_up", "gauge", "Partitions of the live stream that were put aside because they failed")
    yield Metric("leases_held", "gauge", "Leases of tasks that are held")
    yield Metric(
        "oldest_lease_timestamp_seconds", "gauge", "When the oldest of the held leases was taken", adds_up=False
    )
    yield Metric("lease_epoch", "gauge", "The highest epoch of its leases: each taking adds one", adds_up=False)
    for role, fields in _PEERS.items():
        for field, name in fields.items():
            yield Metric(_PEER + name, "counter", f"waybill_{_FIELDS[field][0]} of {role} connectors, live")
    yield Metric(_PEER + _SKIPPED, "counter", f"waybill_{_FIELDS['rejected'][0]}, live")


CATALOGUE: Mapping[str, Metric] = {one.name: one for one in _catalogue()}

_Sample = tuple[str, tuple[str, ...], float]
"""The name of a metric, the values of its labels and the value."""


def full_name(metric: Metric) -> str:
    return metric.name if metric.name.startswith(_PEER) else f"waybill_{metric.name}"


def families() -> list[Family]:
    """Every metric of the catalogue, of the connectors that the caller may know of. Without a ledger there are none;
    raises Unreachable where it does not answer."""
    if not ledger_exists():
        return folded([])
    with reading() as opened:
        return folded([one for one in opened.ledger.figures() if callers.sees(one.name)])


def folded(figures: Sequence[ConnectorFigures], detailed: int = DETAILED) -> list[Family]:
    """Pure: the first `detailed` of them each by itself, the others in a sum."""
    found: dict[str, dict[tuple[str, ...], float]] = {name: {} for name in CATALOGUE}
    for name, labels, value in _general(figures, detailed):
        found[name][labels] = value
    for number, one in enumerate(figures):
        summed = number >= detailed
        for name, labels, value in _of_connector(one):
            if not summed:
                found[name][(one.name, *labels)] = value
            elif CATALOGUE[name].adds_up:
                key = (OTHERS, *labels)
                found[name][key] = found[name].get(key, 0) + value
    return [Family(metric, list(found[name].items())) for name, metric in CATALOGUE.items()]


def _general(figures: Sequence[ConnectorFigures], detailed: int) -> Iterator[_Sample]:
    yield "build_info", (__version__,), 1
    for state in STATES:
        yield "connectors", (state,), sum(one.target_state == state for one in figures)
    yield "connectors_summed", (), max(len(figures) - detailed, 0)


def _of_connector(one: ConnectorFigures) -> Iterator[_Sample]:
    """The label of the connector is left out."""
    yield "connector_info", (_system(one.document["source"]), _system(one.document["sink"])), 1
    yield "connector_paused", (), float(one.target_state != "running")
    yield from _of_receipts(one)
    for stage in STAGES & one.letters.keys():
        yield "dead_letters_total", (stage,), one.letters[stage]
    if unknown := sum(count for stage, count in one.letters.items() if stage not in STAGES):
        yield "dead_letters_total", (OTHER,), unknown
    yield "open_ranges", (), one.open_ranges
    yield "gaps_total", (), one.gaps
    yield "partitions_held_up", (), one.held_up
    yield "leases_held", (), one.leases_held
    if one.oldest_lease_at:
        yield "oldest_lease_timestamp_seconds", (), one.oldest_lease_at.timestamp()
    yield "lease_epoch", (), one.epoch
    yield from _of_runs(one)


def _of_receipts(one: ConnectorFigures) -> Iterator[_Sample]:
    by_kind: dict[str, list[StreamSums]] = {LIVE: []}
    for stream, settled in one.settled.items():
        by_kind.setdefault(_kind(stream), []).append(settled)
    for kind, several in by_kind.items():
        for field, (name, _) in _FIELDS.items():
            yield name, (kind,), sum(each.sums[field] for each in several)
        yield "receipts", (kind,), sum(each.receipts for each in several)
        if several:
            newest: datetime = max(each.newest_at for each in several)
            yield "newest_receipt_timestamp_seconds", (kind,), newest.timestamp()
    live = by_kind[LIVE]
    yield from ((_PEER + name, (), sum(each.sums[field] for each in live)) for field, name in _peers_of(one.document))


def _peers_of(document: Json) -> Iterator[tuple[str, str]]:
    """Field and name. RocketMQ Connect has no connectors that leave RocketMQ out."""
    if hub() in {*document["source"], *document["sink"]}:
        yield from (*_PEERS[role_of(document)].items(), ("rejected", _SKIPPED))


def _of_runs(one: ConnectorFigures) -> Iterator[_Sample]:
    for outcome in OUTCOMES:
        yield "runs_total", (outcome,), one.runs.get(outcome, 0)
    yield "runs_running", (), one.runs.get("running", 0)
    ended = [run for run in one.ended if run.task < int(one.document.get("tasks", 1))]
    if not ended:
        return
    if known := [run.summary["lag"] for run in ended if "lag" in run.summary]:
        yield "lag", (lag_unit(one.document),), sum(known)
    yield "newest_run_failed", (), float(any(run.state != "done" for run in ended))
    yield "newest_run_seconds", (), max((run.ended_at - run.started_at).total_seconds() for run in ended)
    yield "newest_run_end_timestamp_seconds", (), max(run.ended_at for run in ended).timestamp()


def _kind(stream: str) -> str:
    """Of a stream, whose own name may be anything."""
    if stream in (LIVE, ERRORS_SINK):
        return stream
    return "dead-letters" if replays_letters(stream) else "backfill"


def _system(end: Json) -> str:
    """Those of other packages are one: what they are called is not bounded here."""
    name = next(iter(end), "")
    return name if name in SYSTEMS else OTHER
