"""What a journey is made of, drawn from its seed: from where to where, the data, the document, and what happens to both
ends, to the document and to the ledger meanwhile."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from connect_core.sdk.values import Json
from tests.simulator.faults import OFTEN, FaultPlan
from tests.simulator.ledger import NAME
from tests.simulator.logfiles import MAX_LINE_BYTES
from tests.simulator.scenario import Deed, entry
from tests.simulator.source import Entry
from tests.simulator.topics import TOPIC_NAME, queue_key

FILE, LOG, TOPIC = "file", "memory", "rocketmq"
ROUTES = ((FILE, FILE), (FILE, TOPIC), (LOG, FILE), (LOG, TOPIC), (TOPIC, FILE))

GROW, TORN, BAD = "source grows", "a line without its end", "a bad record"
RENAME, RENAME_DATED, RENAME_TWICE = "log renamed", "log renamed with a date", "log renamed twice at once"
LINK, COPY, NEIGHBOUR = "link moves on", "dated copy of a log", "another program's log beside it"
DELETE_READ, DELETE_FORMER, NEW_LOG = "log read and deleted", "oldest rotated log deleted", "new log"
CUT, REPLACE, DELETE = "log cut", "log replaced", "log deleted unread"
EXPIRE, LOSE = "source expires", "source loses its newest messages"
FOREIGN, QUEUES, RECREATE = "others write to the target", "target topic grows", "target topic made anew by others"
RETAIN = "target's oldest messages expire"
LIMITS, TASKS, TARGET, NARROW = "limits changed", "tasks changed", "target changed", "source narrowed or widened"
PAUSE, SET, UNDO, ABANDON = "paused", "offset set", "offset undone", "offset set with abandon"
RESTORE = "ledger restored"
ELSEWHERE = "given up, elsewhere for a while, and back"

OF_FILES = {
    GROW: 8,
    TORN: 3,
    RENAME: 4,
    RENAME_DATED: 2,
    RENAME_TWICE: 2,
    LINK: 4,
    COPY: 3,
    NEIGHBOUR: 3,
    DELETE_READ: 2,
    DELETE_FORMER: 1,
    NEW_LOG: 2,
    CUT: 1,
    REPLACE: 1,
    DELETE: 1,
}
OF_LOGS = {GROW: 8, EXPIRE: 1}
OF_TOPICS = {FOREIGN: 4, QUEUES: 2, RECREATE: 1, ELSEWHERE: 1}
OF_ALL = {LIMITS: 1, TASKS: 2, TARGET: 2, PAUSE: 1, SET: 1, UNDO: 1, ABANDON: 1, RESTORE: 2, BAD: 1}


@dataclass(frozen=True)
class Writer:
    """A program that writes a log."""

    name: str
    lines: int
    linked: bool = False
    alike: bool = False


@dataclass(frozen=True)
class Plan:
    """Everything that is fixed before a journey begins. `logs` are the partitions of a source in memory, or the queues
    of a source topic; `writers` the
    programs whose log files are read. `helped`: somebody tolerates what is bad when a run asks for it."""

    source: str
    sink: str
    document: Json
    logs: dict[str, tuple[Entry, ...]]
    writers: tuple[Writer, ...]
    source_batch: int
    lanes: int
    deeds: tuple[Deed, ...]
    faults: FaultPlan
    pace: float
    window_s: float
    helped: bool = True


def plan_of(seed: int) -> Plan:
    return planned(random.Random(seed))


def planned(chance: random.Random) -> Plan:
    """Many are plain, so that each thing that can happen also stands alone."""
    source, sink = chance.choice(ROUTES)
    partitions = chance.choice((1, 2, 2, 3, 4, 8))
    lines = [chance.randint(2, 30) for _ in range(partitions)]
    linked = chance.random() < 0.2
    return Plan(
        source=source,
        sink=sink,
        document=document_of(chance, source, sink, "logs/a.log" if partitions == 1 else "logs/*.log"),
        logs=logs_of(chance, source, lines),
        writers=tuple(
            Writer(name, lines[n], linked) for n, name in enumerate("abcdefgh"[:partitions]) if source == FILE
        ),
        source_batch=chance.choice((3, 5, 10)),
        lanes=chance.choice((1, 2)),
        deeds=_deeds(chance, source, sink),
        faults=_faults(chance),
        pace=chance.choice((1, 1, 10, 30)),
        window_s=chance.choice((0, 0, 0.5, 1.5)),
        helped=chance.random() < 0.5,
    )


def logs_of(chance: random.Random, source: str, counts: Sequence[int]) -> dict[str, tuple[Entry, ...]]:
    if source == FILE:
        return {}
    names = [queue_key(n) if source == TOPIC else f"p{n}" for n in range(len(counts))]
    return {
        name: tuple(entry(chance, name, at, 0) for at in range(count))
        for name, count in zip(names, counts, strict=True)
    }


def document_of(chance: random.Random, source: str, sink: str, path: str) -> Json:
    sources: dict[str, Json] = {
        FILE: {"path": path, "max_line_bytes": MAX_LINE_BYTES},
        LOG: {},
        TOPIC: {"topics": [TOPIC_NAME]},
    }
    sinks: dict[str, Json] = {
        FILE: {"path": "out/copy.txt"},
        TOPIC: {
            "topic": "copy",
            "queues": chance.choice((1, 2, 3)),
            "order": "partition",
            "on_replaced": "fail",
            "on_unknown": "fail",
        },
    }
    return {
        "name": NAME,
        "source": {"system": source, "options": sources[source]},
        "sink": {"system": sink, "options": sinks[sink]},
        "tasks": chance.choice((1, 1, 2, 3, 4)),
        "range_records": chance.choice((5, 11, 1000, 1000)),
        "tolerance": 0,
        "on_data_loss": "fail",
        "pipeline": {"transforms": []},
    }


def _deeds(chance: random.Random, source: str, sink: str) -> tuple[Deed, ...]:
    weights = {**(OF_FILES if source == FILE else OF_LOGS), **(OF_TOPICS if sink == TOPIC else {})}
    if source == LOG and sink == TOPIC:
        weights |= {RETAIN: 1}
    if chance.random() < 0.6:
        weights |= OF_ALL | ({NARROW: 2} if source == FILE else {})
    kinds = list(weights)
    chosen = chance.sample(kinds, min(chance.choice((1, 2, 4)), len(kinds)))
    count = chance.choice((0, 2, 4, 8))
    happens = chance.choices([GROW, *chosen], [6, *(weights[kind] for kind in chosen)], k=count)
    return tuple(sorted((Deed(chance.uniform(0, 4), kind) for kind in happens), key=lambda deed: deed.at_s))


def _faults(chance: random.Random) -> FaultPlan:
    kinds = frozenset(chance.sample(OFTEN, chance.choice((1, 3, 6, len(OFTEN)))))
    rate = chance.choice((0.01, 0.03, 0.1)) * len(OFTEN) / len(kinds)
    return FaultPlan(kinds, chance.choice((0, 0, 1, 2, 4)), min(rate, 0.3), 20)
