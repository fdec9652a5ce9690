"""Follows one record: from its place in the source, its place in the target, its key, or what its payload says, through
ranges and receipts to where it stands now. Reads only: nothing is written, no lease is taken."""

from __future__ import annotations

from collections.abc import Sequence, Set
from contextlib import ExitStack
from typing import NamedTuple

from connect_core.errors import ConfigError
from connect_core.ledger import BegunRange, Connector, DeadLetter, SettledRange, moves_letters
from connect_core.replication.backfill.searching import SearchWindow
from connect_core.sdk.records import Coordinates, Partition
from connect_core.sdk.rereading import Claim, Rereadable, Traceable, Verdict
from connect_core.sdk.values import ERRORS_SINK, LIVE, Json
from connect_core.service import callers, source_search
from connect_core.service.opened import Opened
from connect_core.service.verifying import claim_of, sink_of

_DIGITS = 18
"""Of the greatest offset: a ledger holds no greater numbers."""
_CANNOT = "its target cannot be asked for one record; its receipt says where those of its range are"


class _Wanted(NamedTuple):
    """A record of a connector. Without a lineage: whatever has that offset, in any stream; and in any incarnation,
    unless one is given."""

    partition: Partition
    offset: int
    of: Coordinates | None = None
    incarnation: int | None = None

    def has(self, stream: str, incarnation: int) -> bool:
        lineage = self.of.lineage if self.of else None
        if lineage is None:
            return self.incarnation in (None, incarnation)
        return (lineage.stream, lineage.incarnation) == (stream, incarnation)


def traced(
    opened: Opened,
    name: str,
    *,
    source: str = "",
    target: str = "",
    key: str = "",
    source_key: str = "",
    when: str = "",
    window: SearchWindow | None = None,
) -> Json:
    """What became of the record at `source` (PARTITION:OFFSET), of the one that stands at a place of the `target`, of
    those with a `key` in the target or a `source_key` in the source, or of those in a `window` of the source `when` a
    condition holds; one of the five is given. Raises ConfigError where there is none; but what is found by a condition
    may be nothing, and `searched` says where it was looked for."""
    _require_one(source, target, key, source_key, when)
    if not when and window and any(window):
        raise ConfigError("--range, --from and --to go with --when")
    connector = opened.ledger.connector(name)
    told: Json = {"connector": name}
    with ExitStack() as resources:
        if source:
            wanted = [_at(opened, connector, source)]
        elif source_key:
            wanted = [_Wanted(*one) for one in source_search.with_key(opened, connector, source_key)]
        elif when:
            found = source_search.holding(opened, connector, when, window or SearchWindow())
            wanted = [_Wanted(one.partition, one.offset, incarnation=one.incarnation) for one in found.found]
            told["searched"] = {"read": found.read, "rest": found.rest, "notices": found.notices}
        else:
            sink, newest = _newest(opened, connector, resources)
            named = sink.at_place(target) if target else sink.with_key(newest.pins.target, key)
            wanted = _of_coordinates(opened, connector, named, target or f"key {key}")
        records = [_trace(opened, connector, one, resources) for one in wanted]
        if target:
            records = [one | {"what": one["what"] or _beside(target, one["ranges"])} for one in records]
        return told | {"records": records}


def _require_one(*given: str) -> None:
    if list(map(bool, given)).count(True) != 1:
        raise ConfigError("Name one record", next_step="Give one of --source, --target, --key, --source-key, --when")


def _at(opened: Opened, connector: Connector, source: str) -> _Wanted:
    name, _, offset = source.rpartition(":")
    if not name or not offset.isdecimal() or len(offset) > _DIGITS:
        raise ConfigError(f"{source!r} names no record of a source", next_step="Name it as PARTITION:OFFSET")
    known = [one.partition for one in opened.ledger.offsets(connector.uid)]
    if Partition(name) not in known and not opened.ledger.partitions_of_id(connector.uid, Partition(name).id):
        raise ConfigError(
            f"{connector.name} has read nothing of a partition {name}",
            next_step=f"`waybill offsets show {connector.name}` lists its partitions",
        )
    return _Wanted(Partition(name), int(offset))


def _newest(opened: Opened, connector: Connector, resources: ExitStack) -> tuple[Traceable, SettledRange]:
    """The sink of what was settled last, which knows where the targets are; not the second one, of dead letters."""
    settled = [one for one in opened.ledger.receipts(connector.uid, limit=50) if one.stream != ERRORS_SINK]
    if not settled:
        raise ConfigError(
            f"{connector.name} has settled nothing yet", next_step="Name a record of its source: --source"
        )
    sink = sink_of(opened, connector, settled[0], resources)
    if not isinstance(sink, Traceable):
        raise ConfigError(
            f"A single record cannot be found in a target of {connector.name}",
            next_step="Name a record of its source: --source PARTITION:OFFSET",
        )
    return sink, settled[0]


def _of_coordinates(opened: Opened, connector: Connector, found: Sequence[Coordinates], where: str) -> list[_Wanted]:
    """Each record once, whatever copies and outputs of it were found."""
    mine: dict[tuple[object, int], _Wanted] = {}
    for one in found:
        for partition in opened.ledger.partitions_of_id(connector.uid, one.lineage.partition_id):
            if one.lineage.uid == connector.uid:
                known = _as_read(opened, one) if moves_letters(one.lineage.stream) else one
                mine.setdefault((known.lineage, known.offset), _Wanted(partition, known.offset, known))
    if not mine:
        others = {one.lineage.uid for one in found} - {connector.uid}
        whose = _of_others(opened, others) if others else "Nobody knows who wrote it"
        raise ConfigError(
            f"There is no record of {connector.name}" if found else "There is no record that Waybill has written",
            where=where,
            next_step=whose
            if found
            else "Keys are found in the topics of the newest range, as long as brokers keep them. What did not get"
            " there is found in the source: --source-key, or --when",
        )
    return list(mine.values())


def _of_others(opened: Opened, uids: Set[str]) -> str:
    """Without those that the caller may not know of."""
    known = {one.uid for one in opened.ledger.connectors() if callers.sees(one.name)}
    named = ", ".join(sorted(uids if callers.who() is None else uids & known))
    return f"It is of another connector (uid {named})" if named else "It is of another connector"


def _as_read(opened: Opened, replayed: Coordinates) -> Coordinates:
    """Of a record that was a dead letter, in the target of a replay or in the second one: what it was in the source."""
    letter = _letter_of(opened, replayed)
    lineage = replayed.lineage._replace(stream=letter.stream, incarnation=letter.incarnation, origin="")
    return Coordinates(lineage, letter.offset, replayed.ordinal)


def _letter_of(opened: Opened, found: Coordinates) -> DeadLetter:
    if found.lineage.stream != ERRORS_SINK:
        return opened.ledger.dead_letter(found.offset)
    letter = opened.ledger.letter_sent(found.lineage.uid, found.lineage.partition_id, found.offset)
    if letter is None:
        raise ConfigError(
            f"The ledger has no dead letter that was sent as {found.offset}",
            next_step="It was restored from a backup, and has forgotten this one",
        )
    return letter


def _beside(target: str, ranges: Sequence[Json]) -> str:
    """Of a place that a person has asked for, and that no receipt says."""
    delivered = [one for one in ranges if one["state"] == "delivered"]
    if not delivered or any(target in one["places"] for one in delivered):
        return ""
    return f"What is at {target} has the name of this record, and no receipt says that place: another program wrote it"


def _trace(opened: Opened, connector: Connector, wanted: _Wanted, resources: ExitStack) -> Json:
    ledger, uid = opened.ledger, connector.uid
    partition, offset = wanted.partition, wanted.offset
    over = ledger.settled_over(uid, partition, offset, offset + 1)
    settled = [one for one in over if wanted.has(one.stream, one.incarnation)]
    begun = [one for one in ledger.begun_before(uid, partition, offset) if wanted.has(one.stream, one.incarnation)]
    letters = ledger.dead_letters_of(uid, partition, offset)
    ranges = [_settled(opened, connector, wanted, one, letters, resources) for one in settled]
    ranges += [_begun(one) for one in begun]
    for letter in _sent_again(letters, wanted):
        ranges += _replayed(opened, connector, letter, resources)
    return {
        "partition": wanted.partition.key,
        "offset": wanted.offset,
        "ranges": ranges,
        "what": "" if ranges else _of_none(opened, connector, wanted),
    }


def _settled(
    opened: Opened,
    connector: Connector,
    wanted: _Wanted,
    one: SettledRange,
    letters: Sequence[DeadLetter],
    resources: ExitStack,
) -> Json:
    mine = [letter for letter in letters if (letter.stream, letter.incarnation) == (one.stream, one.incarnation)]
    state, what, places = _in_target(opened, connector, wanted, one, resources)
    if mine and state != "delivered":
        state, places = "rejected", []
        what = f"in {mine[0].stage}: {mine[0].message} (dead letter {mine[0].id})"
    letters_of_it = [letter.id for letter in mine]
    return {**_range(one), "state": state, "what": what, "places": places, "dead_letters": letters_of_it}


def _range(one: SettledRange) -> Json:
    return {
        "range": one.id,
        "stream": one.stream,
        "incarnation": one.incarnation,
        "begin": one.receipt.begin,
        "end": one.receipt.end,
        "run": one.run_id,
        "attempts": one.attempts,
        "settled_at": one.settled_at,
    }


def _sent_again(letters: Sequence[DeadLetter], wanted: _Wanted) -> list[DeadLetter]:
    """Those that a replay has settled; the last one counts."""
    return [one for one in letters if one.replayed_at and wanted.has(one.stream, one.incarnation)]


def _replayed(opened: Opened, connector: Connector, letter: DeadLetter, resources: ExitStack) -> list[Json]:
    """What the last replay of a dead letter came to."""
    told = []
    for one in opened.ledger.replays_of(letter):
        state, what, places = "rejected", f"again, in {letter.reason.stage}: {letter.reason.message}", list[str]()
        if not letter.again:
            state, what, places = _in_target(opened, connector, _Wanted(letter.partition, letter.id), one, resources)
        what = f"dead letter {letter.id} was replayed{': ' if what else ''}{what}"
        told.append({**_range(one), "state": state, "what": what, "places": places, "dead_letters": [letter.id]})
    return told


def _in_target(
    opened: Opened, connector: Connector, wanted: _Wanted, one: SettledRange, resources: ExitStack
) -> tuple[str, str, list[str]]:
    """In a word and a sentence what became of it, and where it stands."""
    if not one.receipt.emitted:
        return "not there", _not_there(one), []
    try:
        sink = sink_of(opened, connector, one, resources)
    except ConfigError as error:
        return "settled", f"{error.what}: its receipt says how many records were delivered", []
    claim = claim_of(opened, one)
    if not isinstance(sink, Traceable):
        return "settled", _CANNOT, [_stretch(one)]
    found = sink.places(claim, wanted.offset)
    if found:
        copies = len(found) - len({ordinal for ordinal, _ in found})
        return "delivered", f"with {copies} copies more than it has outputs" if copies else "", [at for _, at in found]
    if one.receipt.filtered or one.receipt.absent or one.receipt.rejected:
        return "not there", _not_there(one), []
    return _missing(sink, claim)


def _missing(sink: Rereadable, claim: Claim) -> tuple[str, str, list[str]]:
    (reread,) = sink.reread([claim])
    if reread.verdict is Verdict.GONE:
        return "deleted", "the target has deleted its oldest records, and this one among them", []
    if reread.verdict is Verdict.DIFFERS:
        return "missing", f"its receipt says that all of its range were delivered; now {reread.what}", []
    return "no record", f"all {claim.outputs:,} records of this range are in the target, none has this offset", []


def _not_there(one: SettledRange) -> str:
    """What was left out of a range is counted, not listed."""
    receipt = one.receipt
    counted = {"filtered": receipt.filtered, "rejected": receipt.rejected, "not in the source": receipt.absent}
    told = [f"{count:,} {word}" for word, count in counted.items() if count]
    return f"it is not in the target; of this range the receipt counts {' and '.join(told) or 'no record'}"


def _stretch(one: SettledRange) -> str:
    return ", ".join(f"{name} {spans}" for name, spans in one.receipt.where.items())


def _begun(one: BegunRange) -> Json:
    told = {
        "open": f"run {one.run} has begun it; it, or the next run, finishes it",
        "abandoned": "a person gave this range up, and nobody has looked for it",
    }
    return {
        "range": one.id,
        "stream": one.stream,
        "incarnation": one.incarnation,
        "begin": one.begin,
        "end": None,
        "run": one.run,
        "attempts": one.attempts,
        "settled_at": None,
        "state": one.state,
        "what": told.get(one.state, ""),
        "places": [],
        "dead_letters": [],
    }


def _of_none(opened: Opened, connector: Connector, wanted: _Wanted) -> str:
    """Why no range has it."""
    ledger, uid = opened.ledger, connector.uid
    for stored in (*ledger.gaps(uid), *ledger.left_out(uid)):
        gap = stored.gap
        if stored.partition == wanted.partition and gap.loses and gap.begin <= wanted.offset < (gap.end or 0):
            by = (
                "a person set the offset past it"
                if stored.run_id is None
                else f"in the gap that run {stored.run_id} told"
            )
            return f"It was not moved: {by} ({gap.reason})"
    committed = [one for one in ledger.offsets(uid, LIVE) if one.partition == wanted.partition]
    if committed and wanted.incarnation not in (None, committed[0].position.incarnation):
        return (
            "It was not read yet: the source was replaced since the last run, and this record is of what is there now"
        )
    at = committed[0].position.offset if committed else 0
    if wanted.offset >= at:
        return f"It was not read yet: the next run begins at {at:,}"
    return "No range has it: the connector began behind it, or its offset was set past it"
