"""Reads targets again and compares them with the receipts. Reads only: nothing is written, no lease is taken."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta

from connect_core.config import revealed
from connect_core.errors import ConfigError
from connect_core.ledger import Connector, SettledRange
from connect_core.replication.driver.prepare import resolved
from connect_core.sdk.rereading import Claim, Reread, Rereadable, Verdict
from connect_core.sdk.spans import uncovered
from connect_core.sdk.values import LIVE, Json
from connect_core.service.opened import Opened
from connect_core.service.streams import of_stream
from connect_core.systems import SYSTEMS
from connect_core.systems import sink as opened_sink

REPAIRED = "repaired"
Progress = Callable[[int, int], None]
"""Told how many of how many ranges have been read again."""


def verified(
    opened: Opened,
    name: str,
    *,
    run: str = "",
    since_s: float | None = None,
    stream: str = LIVE,
    progress: Progress = lambda done, of: None,
) -> Json:
    """Compares what the target of a connector holds with its receipts: those of one run, those settled within so many
    seconds, or all of a stream. Of each verdict how many ranges and records; and the ranges that are not as their
    receipts say, but for those `repaired`: a later stream has sent them again, and what that sent is all there. Not
    `in_source` are those of a former incarnation: under their offsets the source has other records by now. Raises
    ConfigError for a target that cannot be read again."""
    connector = opened.ledger.connector(name)
    since = None if since_s is None else datetime.now(UTC) - timedelta(seconds=since_s)
    wanted = None if run else of_stream(stream)
    settled = opened.ledger.receipts(connector.uid, run or None, wanted, limit=None, since=since)
    by_id = {one.id: one for one in settled}
    verdicts = (*(verdict.value for verdict in Verdict), REPAIRED)
    told: Json = {"connector": name, "ranges": len(settled), "records": 0, **dict.fromkeys(verdicts, 0)}
    others: list[Json] = []
    current = {at.partition: at.position.incarnation for at in opened.ledger.offsets(connector.uid, LIVE)}
    with ExitStack() as resources:
        for done, found in enumerate(_reread(opened, connector, settled, resources), 1):
            one, verdict, what = by_id[found.range_id], found.verdict.value, found.what
            if found.verdict is Verdict.DIFFERS and (later := _sent_again_by(opened, connector, one, resources)):
                verdict, what = REPAIRED, f"{what}; {later} has sent the range again"
            told[verdict] += 1
            told["records"] += one.receipt.emitted
            if found.verdict is not Verdict.SAME:
                in_source = current.get(one.partition, one.incarnation) == one.incarnation
                others.append(_told(one, verdict, what, found.place) | {"in_source": in_source})
            progress(done, len(settled))
    return told | {"others": sorted(others, key=lambda one: int(one["range"]))}


def _reread(
    opened: Opened, connector: Connector, settled: list[SettledRange], resources: ExitStack
) -> Iterator[Reread]:
    """Run by run: each with the sink that its ranges had."""
    sinks: dict[str, Rereadable] = {}
    by_run: dict[tuple[str, str], list[SettledRange]] = {}
    for one in settled:
        way = f"{one.pins.revision} {one.pins.connections}"
        if way not in sinks:
            sinks[way] = sink_of(opened, connector, one, resources)
        by_run.setdefault((one.run_id, way), []).append(one)
    for (_, way), mine in by_run.items():
        yield from sinks[way].reread([claim_of(opened, one) for one in mine])


def sink_of(opened: Opened, connector: Connector, one: SettledRange, resources: ExitStack) -> Rereadable:
    """The sink that a range was settled with. Raises ConfigError for one whose targets cannot be read again."""
    side = resolved(
        opened.ledger, opened.settings, opened.home, connector, one.pins.revision, one.pins.connections
    ).sink
    sink = opened_sink(revealed(side), resources)
    if isinstance(sink, Rereadable):
        return sink
    raise ConfigError(
        f"A target of {SYSTEMS[side.system].title} cannot be read again",
        next_step="`waybill receipts` says what was delivered to it",
    )


def claim_of(opened: Opened, one: SettledRange) -> Claim:
    """What its receipt says."""
    receipt = one.receipt
    sought = bool(receipt.deduplicated) or receipt.reconstructed
    before = opened.ledger.written_before(one) if sought else None
    return Claim(
        one.id,
        one.lineage,
        receipt.begin,
        receipt.end,
        receipt.emitted,
        receipt.digest_sent,
        receipt.where,
        one.pins.target,
        receipt.duplicates + receipt.possible_duplicates,
        sought,
        before.receipt.where if before else {},
    )


def _sent_again_by(opened: Opened, connector: Connector, one: SettledRange, resources: ExitStack) -> str:
    """The stream that has sent all of a range later, of which all is there; empty where there is none."""
    begin, end = one.receipt.begin, one.receipt.end
    over = opened.ledger.settled_over(connector.uid, one.partition, begin, end)
    beside = [each for each in over if each.stream != one.stream and each.incarnation == one.incarnation]
    later = [each for each in beside if each.id > one.id]
    for stream in sorted({each.stream for each in later}):
        mine = {each.id: each for each in later if each.stream == stream}
        reread = _reread(opened, connector, [*mine.values()], resources)
        there = [mine[found.range_id].receipt for found in reread if found.verdict is Verdict.SAME]
        if not uncovered(begin, end, [(receipt.begin, receipt.end) for receipt in there]):
            return stream
    return ""


def _told(one: SettledRange, verdict: str, what: str, place: str) -> Json:
    return {
        "range": one.id,
        "run": one.run_id,
        "partition": one.partition.key,
        "begin": one.receipt.begin,
        "end": one.receipt.end,
        "records": one.receipt.emitted,
        "settled_at": one.settled_at,
        "verdict": verdict,
        "what": what,
        "place": place,
    }
