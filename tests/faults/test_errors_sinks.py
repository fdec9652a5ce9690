"""Runs with a second target for dead letters, killed at each step on the way: what is rejected arrives there once, the
rest arrives in the first once, and the ledger says of each letter that it was sent (delivery rule 14).
"""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest

from tests.faults.kit.journeys import SHORT_LEASES, TRY_AGAIN, lines_of
from tests.faults.kit.processes import ended, go_on, kill, stopped_at
from tests.faults.kit.topics import fill, records_of
from tests.faults.rows import FaultRow
from tests.servers import RocketMQ
from tests.site import Site

pytestmark = [pytest.mark.server, pytest.mark.fault]
COSTLY = pytest.mark.fault(costly=True)

RECORDS = 2_600
BAD = [number for number in range(RECORDS) if number % 2]
RUN = ("run", "ovens")
ATTEMPTS = 8
AWAY = "127.0.0.1:9"


def body_of(number: int) -> bytes:
    return json.dumps({"heat": "hot" if number % 2 else number, "n": number, "pad": "x" * 40}).encode()


def letters(site: Site) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = site.json("dead-letters", "list", "ovens", "--last", "10000")["dead_letters"]
    return found


def until_done(site: Site) -> None:
    codes: list[int] = []
    while not codes or codes[-1]:
        assert len(codes) < ATTEMPTS, codes
        codes.append(ended(site.start(*RUN), limit_s=120))
        assert codes[-1] in (0, *TRY_AGAIN), codes


def arrived(site: Site, topic: str) -> Counter[bytes]:
    site.messages()  # which waits until all of it is visible
    return Counter(record for queue in records_of(site.name_servers, topic).values() for record in queue)


@dataclass
class Ovens:
    """Two queues of a topic → a topic. Every second record is a dead letter, and goes to a second topic or a file."""

    site: Site
    second: str
    engine: str = "inline"

    def __post_init__(self) -> None:
        self.site.settings.update(SHORT_LEASES)
        self.origin, self.bad = f"{self.site.topic}-in", f"{self.site.topic}-bad"
        half = RECORDS // 2
        queues = [[body_of(n) for n in range(half)], [body_of(n) for n in range(half, RECORDS)]]
        fill(self.site.name_servers, self.origin, queues)

    def apply(self, *, away: bool = False) -> None:
        topic = {"name_servers": AWAY if away else [*self.site.name_servers], "topic": self.bad, "queues": 2}
        second = {"file": {"path": "bad.log"}} if self.second == "file" and not away else {"rocketmq": topic}
        rocketmq = {"name_servers": [*self.site.name_servers], "topic": self.site.topic, "queues": 2}
        self.site.apply(
            "ovens",
            {
                "source": {"rocketmq": {"name_servers": [*self.site.name_servers], "topics": [self.origin]}},
                "sink": {"rocketmq": rocketmq},
                "parse": {"format": "json", "fields": {"heat": "int32", "n": "int64", "pad": "text"}},
                "errors": {"tolerance": "all", "sink": second, "headers": "connect"},
                "limits": {"range_records": 500},
                "tasks": 2 if self.second == "topic" else 1,
                **({"engine": self.engine} if self.engine else {}),
            },
        )

    def rejected(self) -> Counter[bytes]:
        """What has arrived in the second target."""
        if self.second == "topic":
            return arrived(self.site, self.bad)
        path = self.site.folder / "bad.log"
        return Counter(lines_of(path)) if path.exists() else Counter()

    def check(self, row: FaultRow) -> None:
        found, wanted = self.rejected(), Counter(body_of(number) for number in BAD)
        first, good = arrived(self.site, self.site.topic), Counter(body_of(n) for n in range(RECORDS) if n % 2 == 0)
        row.lost = sum((wanted - found).values()) + sum((good - first).values())
        row.repeated = sum((found - wanted).values()) + sum((first - good).values())
        told = self.site.json("receipts", "ovens", "--stream", "errors-sink", "--last", "1000")["receipts"]
        row.duplicates = sum(one["duplicates"] for one in told)
        assert (row.lost, row.repeated, row.duplicates) == (0, 0, 0)
        assert sum(one["delivered"] + one["deduplicated"] for one in told) == len(BAD)
        assert Counter(one["errors_sink"] for one in letters(self.site)) == {"sent": len(BAD)}
        assert self.site.json("verify", "ovens", "--stream", "all")["differs"] == 0


def struck(ovens: Ovens, row: FaultRow, step: str, passes: int = 0) -> None:
    """Whoever comes to the step is killed, and the driver with it; the next runs go on."""
    ovens.site.fault(step, "stop", passes)
    driver = ovens.site.start(*RUN)
    pid = stopped_at(ovens.site, step, driver)
    assert pid is not None, driver.communicate()
    row.strikes()
    kill(pid)
    kill(driver.pid)
    ended(driver)
    until_done(ovens.site)
    row.moves_again()
    ovens.check(row)


STEPS = (
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


@pytest.mark.parametrize("second", ["topic", "file"])
@pytest.mark.parametrize(("step", "passes"), STEPS)
def test_a_run_killed_at_a_step_sends_each_dead_letter_once(
    inline_site: Site, row: FaultRow, second: str, step: str, passes: int
) -> None:
    """All is rejected before, while the second target is away: the live stream has nothing left, and passes no step."""
    row.describe(
        f"SIGKILL on the way of dead letters to a second target at {step}, passed {passes} times",
        where=f"RocketMQ → topic, dead letters → {second}",
        database="SQLite",
    )
    ovens = Ovens(inline_site, second)
    ovens.apply(away=True)
    for _ in range(5):  # a broker that answers late ends a run, too
        assert ended(ovens.site.start(*RUN), limit_s=120) in TRY_AGAIN
        if len(letters(ovens.site)) == len(BAD):
            break
    assert Counter(one["errors_sink"] for one in letters(ovens.site)) == {"waiting": len(BAD)}
    ovens.apply()
    struck(ovens, row, step, passes)


@pytest.mark.parametrize("second", ["topic", pytest.param("file", marks=COSTLY)])
@pytest.mark.parametrize("step", ["planned", "before-receipt", "settled"])
@pytest.mark.fault(costly=True)
def test_a_live_run_killed_at_a_step_sends_each_dead_letter_once(
    inline_site: Site, row: FaultRow, second: str, step: str
) -> None:
    """While the live stream still moves: nothing was sent yet."""
    row.describe(
        f"SIGKILL of a live run at {step}, before its dead letters go to a second target",
        where=f"RocketMQ → topic, dead letters → {second}",
        database="SQLite",
    )
    ovens = Ovens(inline_site, second)
    ovens.apply()
    struck(ovens, row, step, 1)


@pytest.mark.fault(costly=True)
@pytest.mark.parametrize("step", ["batch-written", "settled"])
def test_dead_letters_by_spark_on_postgresql_are_sent_once(site: Site, row: FaultRow, step: str) -> None:
    row.describe(
        f"SIGKILL on the way of dead letters to a second target at {step}",
        where="RocketMQ → topic, dead letters → topic, by Spark",
        database="PostgreSQL",
    )
    ovens = Ovens(site, "topic", engine="")
    ovens.apply(away=True)
    assert ended(ovens.site.start(*RUN), limit_s=120) in TRY_AGAIN
    ovens.apply()
    struck(ovens, row, step)


@pytest.mark.parametrize("second", ["topic", "file"])
@pytest.mark.fault(costly=True)
def test_two_runs_at_once_send_each_dead_letter_once(inline_site: Site, row: FaultRow, second: str) -> None:
    """One stands still on the way, and the other finds it at work or takes over."""
    row.describe(
        "a second run while the first stands still on the way to the second target",
        where=f"RocketMQ → topic, dead letters → {second}",
        database="SQLite",
    )
    ovens = Ovens(inline_site, second)
    ovens.apply(away=True)
    assert ended(ovens.site.start(*RUN), limit_s=120) in TRY_AGAIN
    ovens.apply()
    ovens.site.fault("executed", "stop")
    driver = ovens.site.start(*RUN)
    pid = stopped_at(ovens.site, "executed", driver)
    assert pid is not None, driver.communicate()
    row.strikes()
    assert ended(ovens.site.start(*RUN), limit_s=120) in (0, *TRY_AGAIN)
    kill(pid)
    ended(driver)
    until_done(ovens.site)
    row.moves_again()
    ovens.check(row)


@pytest.mark.fault(costly=True)
def test_a_second_target_that_is_killed_holds_up_no_live_record(
    inline_site: Site, rocketmq: RocketMQ, row: FaultRow
) -> None:
    """The broker has the dead letters alone. Lines that come while it is away are moved by the next run."""
    row.describe(
        "SIGKILL of the broker of the second target in mid-send, back after 5 s",
        where="file → file, dead letters → topic",
        database="SQLite",
    )
    site, bad = inline_site, inline_site.topic
    site.settings.update(SHORT_LEASES)
    source, target = site.folder / "in.log", site.folder / "out.log"
    source.write_bytes(b"".join(body_of(number) + b"\n" for number in range(RECORDS)))
    for servers in ([AWAY], [*site.name_servers]):
        second = {"rocketmq": {"name_servers": servers, "topic": bad, "queues": 2}}
        site.apply(
            "ovens",
            {
                "source": {"file": {"path": str(source)}},
                "sink": {"file": {"path": str(target)}},
                "parse": {"format": "json", "fields": {"heat": "int32", "n": "int64", "pad": "text"}},
                "errors": {"tolerance": "all", "sink": second},
                "engine": "inline",
            },
        )
        if servers == [AWAY]:
            assert ended(site.start(*RUN), limit_s=120) in TRY_AGAIN
    site.fault("batch-written", "stop", 2)
    driver = site.start(*RUN)
    pid = stopped_at(site, "batch-written", driver)
    assert pid is not None, driver.communicate()
    row.strikes()
    back = time.monotonic() + 5
    rocketmq.kill()
    late = [body_of(RECORDS), body_of(RECORDS + 1)]
    try:
        go_on(pid)
        assert ended(driver, limit_s=120) in TRY_AGAIN
        with source.open("ab") as file:
            file.write(b"".join(line + b"\n" for line in late))
        assert ended(site.start(*RUN), limit_s=120) in TRY_AGAIN
        assert lines_of(target)[-1] == late[0]
        while time.monotonic() < back:
            assert ended(site.start(*RUN), limit_s=120) in TRY_AGAIN
    finally:
        rocketmq.start()
    until_done(site)
    row.moves_again()
    found = arrived(site, bad)
    wanted = Counter(body_of(number) for number in range(RECORDS + 2) if number % 2)
    row.lost, row.repeated = sum((wanted - found).values()), sum((found - wanted).values())
    assert (row.lost, row.repeated) == (0, 0)
    assert Counter(lines_of(target)) == Counter(body_of(number) for number in range(0, RECORDS + 2, 2))
    assert Counter(one["errors_sink"] for one in letters(site)) == {"sent": len(BAD) + 1}
