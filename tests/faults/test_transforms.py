"""Transforms: records lose fields, get others, are filtered and rejected, and go where rules say, while workers are
killed. What arrives is compared byte by byte with what an independent loop makes of the same records.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from tests.faults.kit.checker import EXACT, account
from tests.faults.kit.journeys import database_of, made_up_for, receipts_of, run_until_done, struck
from tests.faults.kit.proxy import RocketMQProxy, Trap, kill_sender
from tests.faults.kit.topics import JavaReader, records_of
from tests.faults.rows import FaultRow
from tests.faults.test_rules import RANGE, Ruled, sends_to_any, told
from tests.site import Site

pytestmark = [pytest.mark.server, pytest.mark.fault]

FIELDS = {"heat": "int32", "n": "int64", "price": "decimal(9,2)", "who": {"card": "text", "name": "text"}}
"""Sorted, as the document is written."""
TRANSFORMS: list[dict[str, Any]] = [
    {"filter": "$.heat <> 3"},
    {"cast": {"n": "text"}},
    {"flatten": "_"},
    {"mask": {"who_card": "redact"}},
    {"rename": {"who_name": "customer"}},
    {"drop": ["heat"]},
    {"set": {"origin": "kiln-{$.n}"}},
]
RULES = [{"name": "all", "keys": "{$.n}"}, {"name": "some", "when": "$.price >= 50", "to": "DEAR"}]
BAD_EVERY = 97


def body_of(number: int) -> bytes:
    """Every 97th is not of the declared types."""
    heat: object = number % 10 if number % BAD_EVERY else "hot"
    who = {"name": f"Zoë {number}", "card": "4000123412341234"}
    row = {"n": number, "heat": heat, "price": (number % 9_000) / 100, "who": who}
    return json.dumps(row, ensure_ascii=False).encode()


def delivered(number: int, *, origin: str = "kiln") -> bytes:
    """Written by hand."""
    price = number % 9_000
    return (
        f'{{"n":"{number}","price":{price // 100}.{price % 100:02},"who_card":"***","customer":"Zoë {number}",'
        f'"origin":"{origin}-{number}"}}'
    ).encode()


def passes(number: int) -> bool:
    return number % BAD_EVERY != 0 and number % 10 != 3


@dataclass
class Reshaped(Ruled):
    """One queue of a topic → two topics. A record has no output, one, or two."""

    name: str = "by-transforms"
    where: str = "RocketMQ → RocketMQ by transforms and rules"
    origin_word: str = "kiln"

    def parts(self) -> dict[str, Any]:
        return {
            "parse": {"format": "json", "fields": FIELDS},
            "transforms": [*TRANSFORMS[:-1], {"set": {"origin": f"{self.origin_word}-{{$.n}}"}}],
            "rules": [{**one, "to": self.hot} if "to" in one else one for one in RULES],
            "errors": {"tolerance": "all"},
        }

    def body(self, number: int) -> bytes:
        return body_of(number)

    def topics(self) -> list[str]:
        return [self.site.topic, self.hot]

    def source(self) -> dict[str, list[bytes]]:
        return self.source_with(lambda n: self.origin_word)

    def source_with(self, origin: Any) -> dict[str, list[bytes]]:
        numbers = list(filter(passes, range(self.fed)))
        dear = [n for n in numbers if n % 9_000 >= 5_000]
        return {
            topic: [topic.encode() + delivered(n, origin=origin(n)) for n in those]
            for topic, those in ((self.site.topic, numbers), (self.hot, dear))
        }

    def target(self) -> dict[str, list[bytes]]:
        found: dict[str, list[bytes]] = {}
        for topic in self.topics():
            theirs = self.reader.records(topic)
            assert records_of(self.site.name_servers, topic) == theirs
            found |= {queue: [topic.encode() + body for body in bodies] for queue, bodies in theirs.items()}
        return found


def check_rejects(journey: Reshaped) -> None:
    """Exactly the bad ones, each with the bytes that it came with."""
    bad = [n for n in range(journey.fed) if n % BAD_EVERY == 0]
    letters = journey.site.json("dead-letters", "list", journey.name, "--last", "1000")["dead_letters"]
    assert sorted(one["offset"] for one in letters) == bad
    for one in letters[:3]:
        shown = journey.site.json("dead-letters", "show", journey.name, str(one["id"]))
        assert shown["original"] == body_of(one["offset"]).decode()
    assert {(one["stage"], one["kind"]) for one in letters} == {("parse", "NotParsed")}
    assert sum(one["rejected"] for one in told(journey)) == len(bad)


@pytest.mark.parametrize("sends", [0, 1, 4])
def test_a_worker_killed_between_two_sends_repeats_and_loses_nothing(
    site: Site, java_reader: JavaReader, proxy: RocketMQProxy, row: FaultRow, sends: int
) -> None:
    row.describe(f"SIGKILL of the worker, behind send {sends + 1}", database=database_of(site))
    journey = Reshaped(site, java_reader, proxy)
    row.where = journey.where
    struck(journey, proxy.set(Trap(sends_to_any(journey.topics()), sends, first=kill_sender)), row)
    assert made_up_for(journey, row) == EXACT
    check_rejects(journey)


@pytest.mark.fault(costly=True)
def test_transforms_that_change_under_an_open_range_count_behind_it(
    site: Site, java_reader: JavaReader, proxy: RocketMQProxy, row: FaultRow
) -> None:
    """What was begun with the old ones is finished with them (delivery rule 8)."""
    row.describe("SIGKILL of the worker, then other transforms are applied", database=database_of(site))
    journey = Reshaped(site, java_reader, proxy)
    row.where = journey.where
    struck(journey, proxy.set(Trap(sends_to_any(journey.topics()), 1, first=kill_sender)), row)
    journey.origin_word = "oven"
    journey.apply([])
    run_until_done(journey)
    row.moves_again()
    ends = [(one["revision"], one["end"]) for one in told(journey)]
    assert {revision for revision, _ in ends} == {1, 2}
    boundary = max(end for revision, end in ends if revision == 1)
    assert boundary <= RANGE
    source = journey.source_with(lambda n: "kiln" if n < boundary else "oven")
    assert account(source, journey.target(), receipts_of(journey), journey.spans()).into(row) == EXACT
    check_rejects(journey)


@pytest.mark.fault(costly=True)
def test_a_range_that_is_given_up_says_what_its_target_holds_of_it(
    site: Site, java_reader: JavaReader, proxy: RocketMQProxy, row: FaultRow
) -> None:
    """What is there stays as the old transforms made it, and is there once; the receipt does not pass it off as what
    the new ones make."""
    row.describe("SIGKILL of the worker, other transforms, and the range is given up", database=database_of(site))
    journey = Reshaped(site, java_reader, proxy)
    row.where = journey.where
    struck(journey, proxy.set(Trap(sends_to_any(journey.topics()), 1, first=kill_sender)), row)
    before = {body for bodies in journey.target().values() for body in bodies}
    assert before
    journey.origin_word = "oven"
    journey.apply([])
    [partition] = [one["partition"] for one in site.json("lag", journey.name)["connectors"][0]["partitions"]]
    site.waybill("offsets", "set", journey.name, partition, "0", "--abandon", "--yes")
    run_until_done(journey)
    row.moves_again()
    assert sum(one["found_before"] for one in told(journey)) == len(before)
    assert before <= {body for bodies in journey.target().values() for body in bodies}
    source, target = ({queue: [*map(_by_either, bodies)] for queue, bodies in ends.items()} for ends in _ends(journey))
    assert account(source, target, receipts_of(journey), journey.spans()).into(row) == EXACT
    assert "To send a stretch again" in site.waybill("verify", journey.name, code=5)


def _ends(journey: Reshaped) -> tuple[dict[str, list[bytes]], dict[str, list[bytes]]]:
    return journey.source(), journey.target()


def _by_either(body: bytes) -> bytes:
    return body.replace(b"oven", b"kiln")
