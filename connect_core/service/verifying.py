"""Reads targets again and compares them with the receipts. Reads only: nothing is written, no lease is taken."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta

from connect_core.config import diverted, revealed, single_writers
from connect_core.errors import ConfigError, DataError
from connect_core.ledger import UNFINISHED, Connector, SettledRange, moves_letters
from connect_core.replication.driver.errors_sink import to_errors_sink
from connect_core.replication.driver.prepare import resolved
from connect_core.sdk.rereading import Claim, Reread, Rereadable, Verdict
from connect_core.sdk.spans import uncovered
from connect_core.sdk.values import ERRORS_SINK, LIVE, Json
from connect_core.service.durations import show_count
from connect_core.service.opened import Opened
from connect_core.service.streams import of_stream
from connect_core.systems import SYSTEMS
from connect_core.systems import sink as opened_sink

REPAIRED = "repaired"
REPAIR = "waybill verify --repair"
"""Why a backfill was begun that repairs."""
_WAY = ("sink", "filter", "parse", "rules", "transforms", "encode")
"""What of a document says where a record goes, and as what."""
Progress = Callable[[int, int], None]
"""Told how many of how many ranges have been read again."""


def verified(
    opened: Opened,
    name: str,
    *,
    run: str = "",
    since_s: float | None = None,
    stream: str = LIVE,
    share: float = 1.0,
    progress: Progress = lambda done, of: None,
) -> Json:
    """Compares what the target of a connector holds with its receipts: those of one run, those settled within so many
    seconds, or all of a stream; of these a share, in whole runs that chance chooses. Of each verdict how many ranges
    and records; and the ranges that are not as their receipts say, but for those `repaired`: a later stream has sent
    them again the same way, and what that sent is all there. Not `in_source` are those of a former incarnation: under
    their offsets the source has other records by now; nor those of a replay of dead letters, whose offsets are numbers
    of letters. Not `in_target` are those that a backfill would send elsewhere.
    Raises ConfigError for a target that cannot be read again."""
    connector = opened.ledger.connector(name)
    since = None if since_s is None else datetime.now(UTC) - timedelta(seconds=since_s)
    wanted = None if run else of_stream(stream)
    settled = opened.ledger.receipts(connector.uid, run or None, wanted, limit=None, since=since)
    chosen = _chosen(settled, share)
    by_id = {one.id: one for one in chosen}
    verdicts = (*(verdict.value for verdict in Verdict), REPAIRED)
    told: Json = {
        "connector": name,
        "settled": len(settled),
        "ranges": len(chosen),
        "records": 0,
        **dict.fromkeys(verdicts, 0),
    }
    others: list[Json] = []
    current = {at.partition: at.position.incarnation for at in opened.ledger.offsets(connector.uid, LIVE)}
    ways = _Ways(opened, connector)
    with ExitStack() as resources:
        for done, found in enumerate(_reread(opened, connector, chosen, resources), 1):
            one, verdict, what = by_id[found.range_id], found.verdict.value, found.what
            if found.verdict is Verdict.DIFFERS and (later := _sent_again_by(opened, ways, one, resources)):
                verdict, what = REPAIRED, f"{what}; {later} has sent the range again"
            told[verdict] += 1
            told["records"] += one.receipt.emitted
            if found.verdict is not Verdict.SAME:
                in_source = current.get(one.partition, one.incarnation) == one.incarnation
                in_source = in_source and not moves_letters(one.stream)
                there = {"in_source": in_source, "in_target": ways.of(one) == ways.of_a_backfill}
                others.append(_told(one, verdict, what, found.place) | there)
            progress(done, len(chosen))
    return told | {"others": sorted(others, key=lambda one: int(one["range"]))}


def words(told: Json) -> str:
    """What `verified` found, in a sentence."""
    ranges, records = show_count(told["ranges"], "range"), show_count(told["records"], "record")
    left = "" if told["ranges"] == told["settled"] else f", of {told['settled']:,} that were settled"
    return f"{told['connector']}: {told['same']:,} of {ranges} as the receipts say; {records} looked for{left}"


def demand_same(told: Json, say: Callable[[str], object]) -> None:
    """Says of each range that differs what and where. Raises DataError when there is one."""
    for one in told["others"]:
        if one["verdict"] == Verdict.DIFFERS.value:
            say(f"{one['partition']} {one['begin']}-{one['end']} differs: {one['what']} [{one['place']}]")
    if told["differs"]:
        raise DataError(
            f"The target is not as the receipts say: {show_count(told['differs'], 'range')} of {told['ranges']:,}",
            where=f"connector {told['connector']}",
            next_step=f"Find out who changed it. `waybill verify {told['connector']}` says how to send it again",
        )


def demand_no_repair_left(opened: Opened, name: str) -> None:
    """Raises ConfigError while one that was begun is not over: another one would send the same records once more."""
    stored = opened.ledger.backfills(opened.ledger.connector(name).uid)
    for one in stored:
        if one.why == REPAIR and one.state in UNFINISHED:
            raise ConfigError(
                "A repair was begun and is not over",
                where=f"connector {name}, {one.stream}",
                next_step=f"Nothing was sent. Finish it: waybill backfills resume {name} {one.stream}; or give it up:"
                f" waybill backfills cancel {name} {one.stream}",
            )


def _chosen(settled: Sequence[SettledRange], share: float) -> list[SettledRange]:
    """Whole runs, as the lines of a file stand for those of one run together: as many as have that share of all ranges,
    and one at least."""
    if share >= 1:
        return list(settled)
    sizes = Counter(one.run_id for one in settled)
    wanted, runs = math.ceil(len(settled) * share), set[str]()
    for run in random.sample([*sizes], len(sizes)):
        if sum(sizes[each] for each in runs) >= wanted:
            break
        runs.add(run)
    return [one for one in settled if one.run_id in runs]


class _Ways:
    """Where records of a connector went, and as what: by a document, with what a stream has changed of its sink."""

    def __init__(self, opened: Opened, connector: Connector) -> None:
        self.connector, self._ledger = connector, opened.ledger
        self._known: dict[tuple[int, str], Json] = {}
        self.of_a_backfill = None if single_writers(connector.document) else _way(connector.document)
        """Of one that was begun now; None where it has a target of its own: a file has one writer only."""

    def of(self, one: SettledRange) -> Json:
        key = (one.pins.revision, one.stream)
        if key not in self._known:
            stored = None if one.stream == LIVE else self._ledger.backfill(self.connector.uid, one.stream)
            data = self._ledger.document(self.connector.uid, one.pins.revision)
            if one.stream == ERRORS_SINK:
                data = {**data, "sink": data["errors"]["sink"]}
            self._known[key] = _way(diverted(data, stored.sink) if stored else data)
        return self._known[key]


def _way(document: Json) -> Json:
    return {key: document.get(key) for key in _WAY}


def _reread(
    opened: Opened, connector: Connector, settled: list[SettledRange], resources: ExitStack
) -> Iterator[Reread]:
    """Run by run: each with the sink that its ranges had."""
    sinks: dict[str, Rereadable] = {}
    by_run: dict[tuple[str, str], list[SettledRange]] = {}
    for one in settled:
        way = f"{one.pins.revision} {one.pins.connections} {one.stream == ERRORS_SINK}"
        if way not in sinks:
            sinks[way] = sink_of(opened, connector, one, resources)
        by_run.setdefault((one.run_id, way), []).append(one)
    for (_, way), mine in by_run.items():
        yield from sinks[way].reread([claim_of(opened, one) for one in mine])


def sink_of(opened: Opened, connector: Connector, one: SettledRange, resources: ExitStack) -> Rereadable:
    """The sink that a range was settled with. Raises ConfigError for one whose targets cannot be read again."""
    then = resolved(opened.ledger, opened.settings, opened.home, connector, one.pins.revision, one.pins.connections)
    side = to_errors_sink(then).sink if one.stream == ERRORS_SINK else then.sink
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


def _sent_again_by(opened: Opened, ways: _Ways, one: SettledRange, resources: ExitStack) -> str:
    """The stream that has sent all of a range later, the same way, of which all is there; empty where there is none."""
    connector, begin, end = ways.connector, one.receipt.begin, one.receipt.end
    if moves_letters(one.stream):  # another replay of these numbers may have had fewer of them
        return ""
    over = opened.ledger.settled_over(connector.uid, one.partition, begin, end)
    beside = [each for each in over if each.stream != one.stream and each.incarnation == one.incarnation]
    later = [each for each in beside if each.id > one.id and ways.of(each) == ways.of(one)]
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
