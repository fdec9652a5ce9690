"""A document with a `sql` step, with the commands: from a log into a file, and into a topic, behind killed workers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.site import Site

pytestmark = pytest.mark.usefixtures("warm_lanes")

LINES = 12_000
BAD = 7_001
STATEMENT = """
SELECT id, upper(name) AS name, price * CAST(count AS DECIMAL(4,0)) AS total, [tag || '!' FOR tag IN tags] AS tags
FROM records WHERE id % 3 <> 0
"""


def line(number: int) -> str:
    count = "many" if number == BAD else str(number % 7)
    row = {"id": number, "name": f"zoë {number}", "price": number % 90 + 0.25, "count": count, "tags": ["a", "b"]}
    return json.dumps(row, ensure_ascii=False)


def delivered(number: int) -> str:
    """Written by hand."""
    cents = (number % 90 * 100 + 25) * (number % 7)
    total = f"{cents // 100}.{cents % 100:02}"
    return f'{{"id":{number},"name":"ZOË {number}","total":{total},"tags":["a!","b!"]}}'


EXPECTED = [delivered(number) for number in range(LINES) if number % 3 != 0 and number != BAD]


def document(sink: dict[str, Any], statement: str = STATEMENT) -> dict[str, Any]:
    fields = {"id": "int64", "name": "text", "price": "decimal(10,2)", "count": "text", "tags": ["text"]}
    return {
        "version": 1,
        "name": "totals",
        "source": {"file": {"path": "orders.log"}},
        "sink": sink,
        "parse": {"format": "json", "fields": fields},
        "transforms": [{"sql": statement}],
        "errors": {"tolerance": "all"},
    }


def applied(site: Site, sink: dict[str, Any]) -> None:
    (site.folder / "orders.log").write_text("".join(f"{line(number)}\n" for number in range(LINES)))
    site.apply("totals", document(sink))


def killed_and_run_to_the_end(site: Site) -> None:
    """Twice, behind the second batch of an attempt."""
    for _ in range(2):
        taken = site.fault("batch-written", passes=1).with_name("batch-written.taken")
        site.waybill("run", "totals", "--engine", "inline", code=1)
        assert taken.exists()
    site.waybill("run", "totals", "--engine", "inline")


def check_what_is_told(site: Site) -> None:
    receipts = site.json("receipts", "totals")["receipts"]
    counts = {name: sum(one[name] for one in receipts) for name in ("read", "filtered", "rejected", "duplicates")}
    assert counts == {"read": LINES, "filtered": LINES // 3, "rejected": 1, "duplicates": 0}
    [letter] = site.json("dead-letters", "list", "totals")["dead_letters"]
    assert (letter["stage"], letter["kind"]) == ("transform", "NotTransformed")
    assert "many" not in letter["message"]
    shown = site.json("dead-letters", "show", "totals", str(letter["id"]))
    assert shown["original"] == line(BAD)


def test_from_a_log_into_a_file(bare_site: Site) -> None:
    applied(bare_site, {"file": {"path": "out.jsonl"}})
    killed_and_run_to_the_end(bare_site)
    assert (bare_site.folder / "out.jsonl").read_text().splitlines() == EXPECTED
    check_what_is_told(bare_site)


@pytest.mark.server
def test_from_a_log_into_a_topic(sqlite_site: Site) -> None:
    site = sqlite_site
    applied(site, {"rocketmq": {"name_servers": "${stack:name_servers}", "topic": site.topic, "queues": 4}})
    killed_and_run_to_the_end(site)
    assert sorted(body.decode() for body in site.messages()) == sorted(EXPECTED)
    check_what_is_told(site)


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("SELECT sum(id) AS total FROM records", "sum is not allowed: it works over several records"),
        ("SELECT * FROM read_csv('/etc/passwd')", "FROM names a table function, which is not allowed"),
        ("SELECT idd FROM records", "no field idd; did you mean id?"),
        ("SELECT record.topic AS topic FROM records", "names the topic, which records of file do not have"),
    ],
)
def test_a_statement_that_is_not_allowed_is_a_fault_of_the_document(
    bare_site: Site, statement: str, words: str
) -> None:
    path = bare_site.folder / "totals.yaml"
    path.write_text(json.dumps(document({"file": {"path": "out.jsonl"}}, statement)))
    told = bare_site.waybill("check", str(path), code=2)
    assert words in told
    assert "transforms" in told


ENDLESS = """
SELECT id, CAST(list_sum(list_transform(l, lambda x: list_sum(list_transform(l, lambda y: length(md5(CAST(x*y AS TEXT)
))))) ) AS DECIMAL(38,0)) AS total FROM records
"""


@pytest.mark.fault(costly=True)
def test_one_record_that_takes_too_long_stops_its_partition_and_is_named(bare_site: Site) -> None:
    """What stands before it is delivered, and the command in the message leaves out this record alone."""
    lines = [json.dumps({"id": number, "l": list(range(9_000 if number == 300 else 2))}) for number in range(400)]
    (bare_site.folder / "lists.log").write_text("".join(f"{one}\n" for one in lines))
    parse = {"format": "json", "fields": {"id": "int64", "l": ["int64"]}}
    changed = {"source": {"file": {"path": "lists.log"}}, "parse": parse}
    bare_site.apply("totals", document({"file": {"path": "out.jsonl"}}, ENDLESS) | changed)
    told = bare_site.waybill("run", "totals", "--engine", "inline", code=1)
    offset = sum(len(one) + 1 for one in lines[:300])
    assert f"offset {offset}]" in told.replace("\n", " ")
    assert "more than 5 s of wall time for one record" in told
    assert [json.loads(one)["id"] for one in (bare_site.folder / "out.jsonl").read_text().splitlines()] == list(
        range(300)
    )
    behind = offset + len(lines[300]) + 1
    command = f"waybill offsets set totals {bare_site.folder / 'lists.log'} {behind}"
    assert command in told
    bare_site.waybill(*command.split()[1:], "--yes")
    bare_site.waybill("run", "totals", "--engine", "inline")
    ids = [json.loads(one)["id"] for one in (bare_site.folder / "out.jsonl").read_text().splitlines()]
    assert ids == [number for number in range(400) if number != 300]
