"""Journeys in which one thing happens often: what each is about, and its plan from a seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace

from connect_core.sdk.values import Json
from tests.simulator import plans
from tests.simulator.faults import KILLED_DRIVER, KILLED_WORKER, SEND_TORN, STOPPED_WORKER, ZOMBIE_DRIVER, FaultPlan
from tests.simulator.plans import FILE, LOG, TOPIC, Plan, Writer
from tests.simulator.scenario import Deed

Making = Callable[[random.Random, Plan], Plan]

_CALM = FaultPlan(frozenset({KILLED_WORKER}), 0, 0, 0)
_KILLS = FaultPlan(frozenset({KILLED_WORKER, KILLED_DRIVER, STOPPED_WORKER, ZOMBIE_DRIVER}), 4, 0.05, 10)


def focused(name: str, seed: int) -> Plan:
    """One of FOCI."""
    chance = random.Random(f"{name} {seed}")
    return FOCI[name](chance, plans.planned(chance))


def several_tasks_into_files(chance: random.Random, plan: Plan) -> Plan:
    source = chance.choice((FILE, LOG))
    several = _route(chance, plan, source, FILE, chance.randint(2, 5), tasks=chance.choice((2, 2, 3, 4)))
    return _happening(chance, several, [plans.GROW] * 3)


def a_window_and_rotated_logs(chance: random.Random, plan: Plan) -> Plan:
    wanted = _route(chance, plan, FILE, FILE, chance.randint(2, 3), tasks=1)
    wanted = _happening(chance, wanted, [plans.GROW] * 9 + [plans.RENAME] * 4)
    return replace(wanted, window_s=chance.choice((1.5, 3)))


def a_target_topic_made_anew(chance: random.Random, plan: Plan) -> Plan:
    """Where everything is slow it happens while a range is written."""
    wanted = _route(chance, plan, chance.choice((FILE, LOG)), TOPIC, chance.randint(1, 3), tasks=1)
    wanted = _happening(chance, wanted, [plans.GROW] * 4 + [plans.RECREATE] * chance.choice((1, 2)))
    return replace(wanted, pace=chance.choice((1, 30)), source_batch=3)


def a_link_that_moves_on(chance: random.Random, plan: Plan) -> Plan:
    wanted = _route(chance, plan, FILE, chance.choice((FILE, TOPIC)), 1, tasks=1)
    wanted = _happening(chance, wanted, [plans.GROW] * 2 + [plans.LINK] * 2)
    return replace(wanted, writers=tuple(replace(one, linked=True) for one in wanted.writers))


def copies_of_logs(chance: random.Random, plan: Plan) -> Plan:
    wanted = _route(chance, plan, FILE, chance.choice((FILE, TOPIC)), chance.randint(1, 2), tasks=1)
    return _happening(chance, wanted, [plans.GROW] * 3 + [plans.COPY] * 2)


def logs_of_other_programs(chance: random.Random, plan: Plan) -> Plan:
    wanted = _route(chance, plan, FILE, chance.choice((FILE, TOPIC)), 1, tasks=1)
    return _happening(chance, wanted, [plans.GROW] * 2 + [plans.NEIGHBOUR] + [plans.RENAME] * 2)


def a_topic_that_grows(chance: random.Random, plan: Plan) -> Plan:
    wanted = _route(chance, plan, chance.choice((FILE, LOG)), TOPIC, chance.randint(2, 5), tasks=chance.choice((1, 2)))
    return _happening(chance, wanted, [plans.GROW] * 4 + [plans.QUEUES])


def given_up_and_elsewhere_for_a_while(chance: random.Random, plan: Plan) -> Plan:
    wanted = _happening(chance, _route(chance, plan, LOG, TOPIC, 1, tasks=1), [plans.GROW] * 3)
    wanted = replace(wanted, deeds=(Deed(0.01, plans.ELSEWHERE), *wanted.deeds))
    faults = FaultPlan(frozenset({KILLED_WORKER}), 5, 0.06, 10)
    document = wanted.document | {"range_records": 1000}
    return replace(wanted, faults=faults, document=document, pace=30, source_batch=3, window_s=0)


def one_bad_partition(chance: random.Random, plan: Plan) -> Plan:
    wanted = _route(
        chance, plan, chance.choice((FILE, LOG)), chance.choice((FILE, TOPIC)), chance.randint(2, 4), tasks=1
    )
    return replace(_happening(chance, wanted, [plans.GROW] * 4 + [plans.BAD]), helped=False)


def logs_read_and_deleted(chance: random.Random, plan: Plan) -> Plan:
    wanted = _route(chance, plan, FILE, chance.choice((FILE, TOPIC)), chance.randint(1, 3), tasks=1)
    return _happening(chance, wanted, [plans.GROW] * 2 + [plans.DELETE_READ])


def logs_thrown_away_early(chance: random.Random, plan: Plan) -> Plan:
    """Rotation keeps little, and another program writes beside it: nobody can always know that nothing is lost."""
    wanted = _route(chance, plan, FILE, chance.choice((FILE, TOPIC)), 1, tasks=1)
    kinds = [plans.GROW] * 3 + [plans.RENAME] * 2 + [plans.DELETE_FORMER] * 6 + [plans.NEIGHBOUR, plans.DELETE_READ]
    return replace(_happening(chance, wanted, kinds), window_s=chance.choice((0, 1.5, 3)))


def a_source_that_narrows(chance: random.Random, plan: Plan) -> Plan:
    wanted = _route(chance, plan, FILE, chance.choice((FILE, TOPIC)), chance.randint(2, 3), tasks=1)
    wanted = _happening(chance, wanted, [plans.GROW] * 2 + [plans.NARROW])
    late = tuple(Deed(chance.uniform(5, 7), plans.GROW) for _ in range(4))
    return replace(wanted, deeds=wanted.deeds + late, window_s=0)


def restored_ledgers(chance: random.Random, plan: Plan) -> Plan:
    sink = chance.choice((FILE, TOPIC))
    wanted = _route(chance, plan, chance.choice((FILE, LOG)), sink, chance.randint(1, 3), tasks=chance.choice((1, 2)))
    kinds = [plans.GROW] * 4 + [plans.RESTORE] + [plans.QUEUES] * (sink == TOPIC)
    return replace(_happening(chance, wanted, kinds), faults=chance.choice((_CALM, _KILLS)))


def rotated_logs_of_restored_ledgers(chance: random.Random, plan: Plan) -> Plan:
    """Since the backup logs were begun, renamed, cut, and thrown away: the ledger counts their files anew."""
    wanted = _route(chance, plan, FILE, TOPIC, chance.randint(1, 2), tasks=chance.choice((1, 2)))
    further = (plans.RENAME, plans.RENAME, plans.RENAME_TWICE, plans.NEW_LOG, plans.DELETE_FORMER, plans.CUT)
    some = chance.sample(further, chance.randint(2, 4))
    return replace(
        _happening(chance, wanted, [plans.GROW] * 4 + some + [plans.RESTORE]), faults=chance.choice((_CALM, _KILLS))
    )


def a_target_that_forgets(chance: random.Random, plan: Plan) -> Plan:
    """Retention, while ranges are open that a killed worker has left."""
    wanted = _route(chance, plan, chance.choice((FILE, LOG)), TOPIC, chance.randint(1, 3), tasks=chance.choice((1, 2)))
    wanted = _happening(chance, wanted, [plans.GROW] * 4 + [plans.RETAIN] * 2 + [plans.FOREIGN])
    return replace(wanted, faults=_KILLS, pace=chance.choice((1, 10, 30)), source_batch=3)


def batches_that_a_broker_tears(chance: random.Random, plan: Plan) -> Plan:
    wanted = _route(chance, plan, chance.choice((FILE, LOG)), TOPIC, chance.randint(1, 3), tasks=1)
    wanted = _happening(chance, wanted, [plans.GROW] * 4 + [plans.FOREIGN] * chance.choice((0, 2)))
    faults = FaultPlan(frozenset({SEND_TORN, KILLED_WORKER}), 3, 0.1, 10)
    return replace(wanted, faults=faults, source_batch=10)


def topics_into_files(chance: random.Random, plan: Plan) -> Plan:
    wanted = _route(chance, plan, TOPIC, FILE, chance.randint(1, 4), tasks=chance.choice((1, 1, 2, 3)))
    kinds = chance.choice(([], [plans.EXPIRE], [plans.TASKS], [plans.RESTORE], [plans.SET], [plans.BAD]))
    wanted = replace(wanted, helped=chance.random() < 0.5, window_s=chance.choice((0, 1.5, 3)))
    return replace(_happening(chance, wanted, [plans.GROW] * 5 + kinds), faults=chance.choice((_CALM, _KILLS)))


def source_topics_that_lose_their_end(chance: random.Random, plan: Plan) -> Plan:
    wanted = _route(chance, plan, TOPIC, FILE, chance.randint(1, 2), tasks=1)
    kinds = [plans.GROW] * 4 + [plans.LOSE] * chance.choice((1, 2))
    return replace(_happening(chance, wanted, kinds), faults=chance.choice((_CALM, _KILLS)))


def kills_at_files(chance: random.Random, plan: Plan) -> Plan:
    wanted = _route(chance, plan, chance.choice((FILE, LOG)), FILE, chance.randint(1, 3), tasks=chance.choice((1, 2)))
    return replace(_happening(chance, wanted, [plans.GROW] * 3), faults=_KILLS, pace=chance.choice((10, 30)))


FOCI: Mapping[str, Making] = {
    making.__name__: making
    for making in (
        several_tasks_into_files,
        a_window_and_rotated_logs,
        a_target_topic_made_anew,
        a_link_that_moves_on,
        copies_of_logs,
        logs_of_other_programs,
        a_topic_that_grows,
        given_up_and_elsewhere_for_a_while,
        one_bad_partition,
        logs_read_and_deleted,
        logs_thrown_away_early,
        a_source_that_narrows,
        restored_ledgers,
        rotated_logs_of_restored_ledgers,
        kills_at_files,
        topics_into_files,
        source_topics_that_lose_their_end,
        batches_that_a_broker_tears,
        a_target_that_forgets,
    )
}


def _route(chance: random.Random, plan: Plan, source: str, sink: str, partitions: int, *, tasks: int) -> Plan:
    counts = [chance.randint(2, 20) for _ in range(partitions)]
    path = "logs/a.log" if partitions == 1 else "logs/*.log"
    document: Json = plans.document_of(chance, source, sink, path)
    return replace(
        plan,
        source=source,
        sink=sink,
        document=document | {"tasks": tasks},
        logs=plans.logs_of(chance, source, counts),
        writers=tuple(Writer("abcdefgh"[n], count) for n, count in enumerate(counts) if source == FILE),
        faults=_CALM,
        window_s=chance.choice((0, 0, 0.5)),
        helped=True,
    )


def _happening(chance: random.Random, plan: Plan, kinds: list[str]) -> Plan:
    deeds = [Deed(chance.uniform(0.3, 4), kind) for kind in kinds]
    return replace(plan, deeds=tuple(sorted(deeds, key=lambda deed: deed.at_s)))
