"""Replays of dead letters killed at each of their steps, and started again by the same command: each record arrives
once, what is rejected again stays a dead letter, and the ledger says of each which it was (delivery rule 14).
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest

from tests.faults.kit.journeys import SHORT_LEASES, TRY_AGAIN, lines_of
from tests.faults.kit.processes import ended, kill, stopped_at
from tests.faults.kit.topics import fill, records_of
from tests.faults.rows import FaultRow
from tests.site import Site

pytestmark = [pytest.mark.server, pytest.mark.fault]
COSTLY = pytest.mark.fault(costly=True)

RECORDS = 2_600
BAD = [number for number in range(RECORDS) if number % 2]
WORSE = [number for number in BAD if number % 97 == 1]
"""Those of the bad ones that the document of today rejects too."""
LATE = 1_000
"""By rules, records from here on go to a second topic too."""
REPLAY = ("dead-letters", "replay", "ovens", "--yes")
ATTEMPTS = 8


def body_of(number: int) -> bytes:
    heat: object = number if number % 2 == 0 else "hot" if number not in WORSE else [number]
    return json.dumps({"heat": heat, "n": number, "pad": "x" * 40}).encode()


@dataclass
class Ovens:
    """Two queues of a topic → a topic, two topics by rules, or a file. Every second record is a dead letter, those of a
    queue are several ranges, and the first of these are several batches."""

    site: Site
    target: str
    engine: str = "inline"

    def __post_init__(self) -> None:
        self.site.settings.update(SHORT_LEASES)
        self.origin, self.late = f"{self.site.topic}-in", f"{self.site.topic}-late"
        half = RECORDS // 2
        queues = [[body_of(n) for n in range(half)], [body_of(n) for n in range(half, RECORDS)]]
        fill(self.site.name_servers, self.origin, queues)
        self.apply("int32")
        self.site.waybill("run", "ovens")
        assert len(self.letters()) == len(BAD)
        self.live = Counter(self.arrived())
        self.apply("text")

    def apply(self, heat: str) -> None:
        rocketmq = {"name_servers": [*self.site.name_servers], "topic": self.site.topic, "queues": 2}
        sink = {"file": {"path": "out.log"}} if self.target == "file" else {"rocketmq": rocketmq}
        rules = [{"name": "all"}, {"name": "late", "when": f"$.n >= {LATE}", "to": self.late}]
        self.site.apply(
            "ovens",
            {
                "source": {"rocketmq": {"name_servers": self.site.name_servers, "topics": [self.origin]}},
                "sink": sink,
                "parse": {"format": "json", "fields": {"heat": heat, "n": "int64", "pad": "text"}},
                "errors": {"tolerance": "all"},
                "limits": {"range_records": 500},
                "tasks": 2 if self.target == "topic" else 1,
                **({"rules": rules} if self.target == "topics" else {}),
                **({"engine": self.engine} if self.engine else {}),
            },
        )

    def letters(self, state: str = "open") -> list[dict[str, Any]]:
        words = ("--state", state, "--last", "10000")
        found: list[dict[str, Any]] = self.site.json("dead-letters", "list", "ovens", *words)["dead_letters"]
        return found

    def arrived(self) -> list[bytes]:
        if self.target != "file":
            self.site.messages()  # which waits until all of it is visible
            topics = [self.site.topic, *([self.late] if self.target == "topics" else [])]
            queues = [queue for topic in topics for queue in records_of(self.site.name_servers, topic).values()]
            return [record for queue in queues for record in queue]
        paths = [path for path in self.site.folder.glob("out.log*") if ".unsettled-" not in path.name]
        return [line for path in paths for line in lines_of(path)]

    def replayed(self) -> Counter[bytes]:
        """What has arrived since."""
        return Counter(self.arrived()) - self.live

    def until_done(self) -> None:
        codes: list[int] = []
        while not codes or codes[-1]:
            assert len(codes) < ATTEMPTS, codes
            codes.append(ended(self.site.start(*REPLAY), limit_s=120))
            assert codes[-1] in (0, *TRY_AGAIN), codes

    def check(self, row: FaultRow) -> int:
        """How many replays there were: each has come to those that are rejected again."""
        good = [number for number in BAD if number not in WORSE]
        twice = [number for number in good if number >= LATE] if self.target == "topics" else []
        wanted = Counter(body_of(number) for number in (*good, *twice))
        found = self.replayed()
        row.lost, row.repeated = sum((wanted - found).values()), sum((found - wanted).values())
        told = self.site.json("receipts", "ovens", "--stream", "all", "--last", "1000")["receipts"]
        replays = [one for one in told if one["stream"].startswith("dead-letters-")]
        streams = {one["stream"] for one in replays}
        row.duplicates = sum(one["duplicates"] for one in replays)
        assert (row.lost, row.repeated, row.duplicates) == (0, 0, 0)
        assert sum(one["delivered"] + one["deduplicated"] for one in replays) == wanted.total()
        assert sum(one["rejected"] for one in replays) == len(WORSE) * len(streams)
        assert len(self.letters("replayed")) == len(BAD) - len(WORSE)
        left = self.letters()
        assert len(left) == len(WORSE)
        assert {(one["stage"], bool(one["replayed_by"])) for one in left} == {("parse", True)}
        assert self.site.json("verify", "ovens", "--stream", "all")["differs"] == 0
        return len(streams)


def struck(ovens: Ovens, row: FaultRow, step: str, passes: int = 0) -> None:
    """Whoever comes to the step is killed, and the driver with it. The same command finishes what was begun."""
    ovens.site.fault(step, "stop", passes)
    driver = ovens.site.start(*REPLAY)
    pid = stopped_at(ovens.site, step, driver)
    assert pid is not None, driver.communicate()
    row.strikes()
    kill(pid)
    kill(driver.pid)
    ended(driver)
    ovens.until_done()
    row.moves_again()
    assert ovens.check(row) == 1


STEPS = (
    ("leased", 0),
    ("before-planned", 0),
    ("planned", 0),
    ("planned", 1),
    ("lane-started", 0),
    ("batch-written", 0),
    ("batch-written", 3),
    ("before-receipt", 0),
    ("before-receipt", 1),
    ("executed", 0),
    ("settled", 0),
    ("settled", 1),
)


@pytest.mark.parametrize("target", ["topic", "topics", "file"])
@pytest.mark.parametrize(("step", "passes"), STEPS)
def test_a_replay_killed_at_a_step_is_finished_by_the_same_command(
    inline_site: Site, row: FaultRow, target: str, step: str, passes: int
) -> None:
    row.describe(
        f"SIGKILL of a replay of dead letters at {step}, passed {passes} times",
        where=f"RocketMQ → {target}",
        database="SQLite",
    )
    struck(Ovens(inline_site, target), row, step, passes)


@pytest.mark.fault(costly=True)
@pytest.mark.parametrize("step", ["batch-written", "before-receipt", "executed", "settled"])
def test_a_replay_by_spark_on_postgresql_is_finished_by_the_same_command(site: Site, row: FaultRow, step: str) -> None:
    row.describe(
        f"SIGKILL of a replay of dead letters at {step}", where="RocketMQ → topic, by Spark", database="PostgreSQL"
    )
    struck(Ovens(site, "topic", engine=""), row, step)


@pytest.mark.parametrize("step", [pytest.param("batch-written"), pytest.param("settled", marks=COSTLY)])
@pytest.mark.fault(costly=True)
def test_a_replay_that_is_begun_while_another_one_stands_still_sends_nothing_twice(
    inline_site: Site, row: FaultRow, step: str
) -> None:
    """The second one finishes the first, or finds it at work. Nothing is left for a third, but what none takes."""
    row.describe(f"a second replay while the first stands still at {step}", where="RocketMQ → topic", database="SQLite")
    ovens = Ovens(inline_site, "topic")
    ovens.site.fault(step, "stop")
    driver = ovens.site.start(*REPLAY)
    pid = stopped_at(ovens.site, step, driver)
    assert pid is not None, driver.communicate()
    row.strikes()
    second = ovens.site.start(*REPLAY, "--partition", "0")
    assert ended(second, limit_s=120) in (0, *TRY_AGAIN)
    kill(pid)
    ended(driver)
    ovens.until_done()
    ovens.until_done()
    row.moves_again()
    assert ovens.check(row) > 1
