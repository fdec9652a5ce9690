"""What a history is made of, drawn from its seed: the data, the document, what operators do, what goes wrong."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from connect_core.config.resolving import Resolved
from connect_core.sdk.values import Json
from connect_core.work import Side
from tests.simulator.faults import CLOCK_STOOD, LANE_STRAYS, OFTEN, SEND_HELD, FaultPlan
from tests.simulator.ledger import NAME, UID
from tests.simulator.source import HOLE, PLAIN, TOO_LARGE, UNREADABLE, Entry

GROW, FOREIGN, EXPIRE = "source grows", "others write to the target", "source expires"
REVISE, PAUSE, RESUME = "document changed", "paused", "resumed"
KEYS = 7
"""So many there are in a partition; half of its records have none."""
SET, ABANDON, UNDO = "offset set", "offset set with abandon", "offset undone"


@dataclass(frozen=True)
class Deed:
    """What somebody does at a moment."""

    at_s: float
    kind: str


@dataclass(frozen=True)
class Scenario:
    """Everything that is fixed before a history begins. `logs` are by partition key; `odd` is the share of positions
    without a plain record; `pace` how many times slower than usual everything is: above 20 a quantum cuts ranges. Runs
    stay for `window_s`, and then the logs grow all the while."""

    logs: dict[str, tuple[Entry, ...]]
    document: Json
    source_batch: int
    lanes: int
    deeds: tuple[Deed, ...]
    faults: FaultPlan
    odd: float
    pace: float
    window_s: float = 0.0


def drawn(chance: random.Random) -> Scenario:
    """Many are plain, so that each thing that can go wrong also stands alone."""
    odd = chance.choice((0.0, 0.0, 0.1, 0.3))
    partitions = chance.choice((1, 1, 2, 3))
    logs = {
        f"p{n}": tuple(entry(chance, f"p{n}", at, odd) for at in range(chance.randint(5, 36)))
        for n in range(partitions)
    }
    document: Json = {
        "name": NAME,
        "topic": "copy",
        "queues": chance.choice((1, 2, 3)),
        "order": "partition",
        "tasks": chance.choice((1, 1, 2)),
        "range_records": chance.choice((7, 15, 1000, 1000)),
        "tolerance": chance.choice((-1, -1, 0, 2)),
        "on_data_loss": chance.choice(("fail", "skip")),
        "pipeline": {"transforms": []},
    }
    scenario = Scenario(
        logs=logs,
        document=document,
        source_batch=chance.choice((3, 5, 10)),
        lanes=chance.choice((1, 2)),
        deeds=_deeds(chance),
        faults=_fault_plan(chance),
        odd=odd,
        pace=chance.choice((1, 1, 10, 30, 60)),
    )
    return _staying(chance, scenario) if chance.random() < 0.25 else scenario


def _staying(chance: random.Random, scenario: Scenario) -> Scenario:
    """Records come while runs are in their window, some of them after silences."""
    trickle = [Deed(chance.uniform(0, 5), GROW) for _ in range(chance.choice((2, 6, 12)))]
    deeds = sorted([*scenario.deeds, *trickle], key=lambda deed: deed.at_s)
    return replace(scenario, deeds=tuple(deeds), window_s=chance.choice((0.5, 1.5, 3)))


def by_key(scenario: Scenario) -> Scenario:
    """The same, with the records of each partition spread over several queues."""
    return replace(scenario, document={**scenario.document, "order": "key", "queues": scenario.document["queues"] + 1})


def to_topics_that_records_name(scenario: Scenario) -> Scenario:
    """The same, with a topic for each key, and one for records without."""
    rules = [{"name": "each", "to": "copy-{KEYS}"}]
    return replace(scenario, document={**scenario.document, "pipeline": {"transforms": [], "rules": rules}})


def on_hosts(scenario: Scenario, seed: int, hosts: Sequence[object]) -> Scenario:
    """The same, with what can go wrong between hosts; of every third clocks stand still as well."""
    if not hosts:
        return scenario
    kinds = {LANE_STRAYS, *((CLOCK_STOOD,) if seed % 3 == 2 else ())}
    return replace(scenario, faults=replace(scenario.faults, kinds=scenario.faults.kinds | kinds))


def entry(chance: random.Random, partition: str, at: int, odd: float) -> Entry:
    body = f"{partition}:{at}".encode()
    if chance.random() >= odd:
        return Entry(PLAIN, body, chance.choice((None, f"key-{at % KEYS}")))
    kind = chance.choice((HOLE, HOLE, UNREADABLE, TOO_LARGE))
    return Entry(kind, body + b"." * 1100 if kind == TOO_LARGE else body)


def _deeds(chance: random.Random) -> tuple[Deed, ...]:
    if chance.random() < 0.4:
        return ()
    kinds = chance.choices(
        (GROW, FOREIGN, REVISE, PAUSE, EXPIRE, SET, ABANDON, UNDO), (6, 4, 3, 2, 2, 2, 2, 1), k=chance.randint(1, 4)
    )
    deeds = [Deed(chance.uniform(0, 4), kind) for kind in kinds]
    return tuple(sorted(deeds, key=lambda deed: deed.at_s))


def _fault_plan(chance: random.Random) -> FaultPlan:
    """A few kinds at a time, so that faults of one kind also meet."""
    kinds = set(chance.sample(OFTEN, chance.choice((1, 3, 6, len(OFTEN)))))
    if chance.random() < 0.15:
        kinds.add(SEND_HELD)
    rate = chance.choice((0.01, 0.03, 0.1)) * len(OFTEN) / len(kinds)
    return FaultPlan(frozenset(kinds), chance.choice((0, 1, 2, 3, 4, 6, 8)), min(rate, 0.3), 30)


def revised(chance: random.Random, document: Json) -> Json:
    """The document with one thing changed."""
    changes: list[Json] = [
        {"range_records": chance.choice((5, 11, 500))},
        {"topic": chance.choice(("copy", "copy-2"))},
        {"tasks": 3 - document["tasks"]},
        {"queues": document["queues"] + 1},
        {"pipeline": {**document["pipeline"], "note": chance.random()}},
    ]
    return {**document, **chance.choice(changes)}


def resolved(document: Json) -> Resolved:
    """What a run works with."""
    templates = bool(document["pipeline"].get("rules"))
    return Resolved(
        name=NAME,
        uid=UID,
        source=Side("memory", {}),
        sink=Side(
            "rocketmq", {name: document[name] for name in ("topic", "queues", "order")} | {"templates": templates}
        ),
        pipeline=document["pipeline"],
        tasks=document["tasks"],
        range_records=document["range_records"],
        range_bytes=1 << 20,
        tolerance=document["tolerance"],
        on_data_loss=document["on_data_loss"],
    )
