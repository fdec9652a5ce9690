"""rules list, add, set, enable, disable, delete, try: revisions of a document, and a look at what would come of it."""

from __future__ import annotations

import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from connect_core.cli.rules import add
from tests.unit.cli.conftest import Typed, Waybill

MQTT = """\
version: 1
name: devices
source: {mqtt: {host: nowhere.invalid, filters: [site/#]}}
sink: {rocketmq: {name_servers: ['nowhere.invalid:9876'], topic: readings}}
"""


def rules(waybill: Waybill, name: str = "copy") -> list[dict[str, Any]]:
    typed = waybill("rules", "list", name, "--json")
    assert typed.code == 0
    found: list[dict[str, Any]] = typed.json["rules"]
    return found


def done(typed: Typed) -> Any:
    assert typed.code == 0, typed.err
    return typed


def test_a_rule_from_first_to_last(waybill: Waybill, applied: Path) -> None:
    assert "no rules: every record passes as it is" in waybill("rules", "list", "copy").out
    added = done(waybill("rules", "add", "copy", "hot", "--when", "$.temp > 30", "--why", "too many alarms"))
    assert added.out.splitlines() == [
        "copy: changed, revision 2",
        '  + rules: ["hot"]',
        "  + rules[hot].when: $.temp > 30",
    ]
    done(waybill("rules", "add", "copy", "first", "--before", "hot", "--disabled"))
    assert [one["name"] for one in rules(waybill)] == ["first", "hot"]
    changed = done(waybill("rules", "set", "copy", "hot", "--keys", "{$.id}", "--unset", "when"))
    assert changed.out.splitlines()[1:] == ["  + rules[hot].keys: {$.id}", "  - rules[hot].when: $.temp > 30"]
    done(waybill("rules", "enable", "copy", "first"))
    done(waybill("rules", "disable", "copy", "hot"))
    assert rules(waybill) == [{"name": "first"}, {"name": "hot", "keys": "{$.id}", "enabled": False}]
    off = done(waybill("rules", "disable", "copy", "first"))
    assert "all are disabled, so every record is filtered" in off.err
    done(waybill("rules", "delete", "copy", "first"))
    last = done(waybill("rules", "delete", "copy", "hot"))
    assert "no rule is left: every record passes as it is" in last.err
    history = waybill("connectors", "show", "copy", "--revisions", "--json").json["revisions"]
    assert len(history) == 9
    assert {one["who"] for one in history} == {"ann"}
    assert "too many alarms" in {one["why"] for one in history}
    assert "rules" not in waybill("connectors", "show", "copy", "--json").json["document"]


def test_two_who_change_rules_at_once_do_not_overwrite_each_other(waybill: Waybill, applied: Path) -> None:
    """Both have read the same revision before either may write."""
    with closing(sqlite3.connect(applied / ".waybill" / "ledger.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with ThreadPoolExecutor(2) as pool:
            adding = [pool.submit(add, "copy", name) for name in ("one", "two")]
            time.sleep(1.0)
            assert not any(one.done() for one in adding)
            other.execute("COMMIT")
            for one in adding:
                one.result()
    assert sorted(one["name"] for one in rules(waybill)) == ["one", "two"]
    assert waybill("connectors", "show", "copy", "--json").json["revision"] == 3


def test_the_list_shows_what_each_rule_says(waybill: Waybill, applied: Path) -> None:
    done(waybill("rules", "add", "copy", "hot", "--filter", "#", "--when", "$.temp > 30", "--tags", "{$.site}"))
    (heading, row) = waybill("rules", "list", "copy").out.splitlines()
    assert heading.split() == ["NAME", "ENABLED", "FILTER", "WHEN", "TO", "TAGS", "KEYS"]
    assert row.split() == ["hot", "yes", "#", "$.temp", ">", "30", "-", "{$.site}", "-"]


def test_nothing_is_written_by_a_dry_run(waybill: Waybill, applied: Path) -> None:
    told = done(waybill("rules", "add", "copy", "hot", "--dry-run", "--json")).json
    assert (told["applied"], told["revision"], told["difference"]) == (False, 1, ['+ rules: ["hot"]'])
    assert rules(waybill) == []


CIRCLE = """\
version: 1
name: {name}
source: {{rocketmq: {{name_servers: ['nowhere.invalid:9876'], topics: [{source}]}}}}
sink: {{rocketmq: {{name_servers: ['nowhere.invalid:9876'], topic: {sink}}}}}
"""


def test_a_change_of_rules_makes_no_circle_that_apply_refuses(waybill: Waybill, applied: Path) -> None:
    there, back = applied / "there.yaml", applied / "back.yaml"
    there.write_text(CIRCLE.format(name="there", source="east", sink="west"))
    back.write_text(
        CIRCLE.format(name="back", source="west", sink="east") + "rules: [{name: hot, when: '$.temp > 30'}]\n"
    )
    done(waybill("apply", str(there), str(back)))
    refused = waybill("rules", "delete", "back", "hot")
    assert refused.code == 2
    assert "what it writes is read by connector there, which writes what back reads" in refused.err
    assert rules(waybill, "back") == [{"name": "hot", "when": "$.temp > 30"}]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["add", "copy", "hot"], "already has a rule hot"),
        (["add", "copy", "new", "--before", "hut"], "has no rule hut"),
        (["add", "copy", "a b"], "cannot name a rule"),
        (["add", "copy", "new", "--filter", "a/#/b"], "rules.1.filter: # may be the last level only"),
        (["add", "copy", "new", "--when", "$.a >"], "rules.1.when: is not a condition: it cannot be read at its end"),
        (["add", "copy", "new", "--to", "alarms"], "rules.1.to: names a topic, but file has no topics"),
        (["set", "copy", "hot"], "There is nothing to change"),
        (["set", "copy", "hot", "--unset", "name"], "--unset name cannot be"),
        (["set", "copy", "hot", "--keys", "{id}"], "rules.0.keys: 'id' names nothing"),
        (["set", "copy", "hut", "--keys", "x"], "has no rule hut"),
        (["enable", "copy", "hut"], "It has hot"),
        (["disable", "cpoy", "hot"], "'copy'"),
        (["delete", "copy", "hut"], "has no rule hut"),
        (["list", "cpoy"], "'copy'"),
        (["try", "cpoy"], "'copy'"),
        (["try", "copy", "--payload", "{}", "--header", "x"], "is not NAME=VALUE"),
    ],
)
def test_what_cannot_be_is_said_and_changes_nothing(
    words: list[str], said: str, waybill: Waybill, applied: Path
) -> None:
    done(waybill("rules", "add", "copy", "hot"))
    typed = waybill("rules", *words)
    assert (typed.code, said in typed.err) == (2, True), typed.err
    assert rules(waybill) == [{"name": "hot"}]


def test_what_the_last_lines_would_become(waybill: Waybill, applied: Path) -> None:
    lines = "".join(f'{{"n": {n}}}\n' for n in range(40)) + "no json\n"
    (applied / "logs" / "b.log").write_text(lines)
    done(waybill("rules", "add", "copy", "big", "--when", "$.n > 37", "--keys", "{$.n}"))
    done(waybill("rules", "add", "copy", "all", "--when", "$.n > 38", "--tags", "x"))
    told = done(waybill("rules", "try", "copy", "--json")).json["records"]
    assert [one["value"] for one in told] == [*(f'{{"n": {n}}}' for n in range(21, 40)), "no json"]
    assert [len(one["becomes"]) for one in told] == [*[0] * 17, 1, 2, 0]
    assert told[-2]["becomes"] == [
        {"rule": "big", "to": None, "tags": None, "key": "39"},
        {"rule": "all", "to": None, "tags": "x", "key": None},
    ]
    shown = done(waybill("rules", "try", "copy", "--last", "2")).out.splitlines()
    assert shown == ['{"n": 39}', "  -> big: key 39", "  -> all: tags x", "no json", "  filtered"]
    assert not list((applied / "out").iterdir())


def test_a_filter_of_the_document_comes_first(waybill: Waybill, applied: Path) -> None:
    (applied / "devices.yaml").write_text(f"{MQTT}filter: {{headers: {{site: a}}}}\nrules: [{{name: one}}]\n")
    done(waybill("apply", "devices.yaml"))
    for site, count in (("a", 1), ("b", 0)):
        words = ["--payload", "x", "--header", f"site={site}", "--json"]
        (told,) = done(waybill("rules", "try", "devices", *words)).json["records"]
        assert len(told["becomes"]) == count


def test_without_rules_there_is_nothing_to_try(waybill: Waybill, applied: Path) -> None:
    typed = waybill("rules", "try", "copy")
    assert (typed.code, "copy has no rules and no transforms" in typed.err) == (2, True)


def test_what_an_mqtt_broker_has_cannot_be_looked_at_but_a_record_can_be_typed(waybill: Waybill, applied: Path) -> None:
    (applied / "devices.yaml").write_text(MQTT)
    done(waybill("apply", "devices.yaml"))
    words = ["--filter", "site/+/temp", "--when", "$.value > 30", "--to", "alarms", "--tags", "{topic[2]}"]
    done(waybill("rules", "add", "devices", "hot", *words))
    refused = waybill("rules", "try", "devices")
    assert refused.code == 2
    assert "cannot be shown without taking them" in refused.err
    assert "--topic site/1/temp --payload" in refused.err
    typed = done(waybill("rules", "try", "devices", "--topic", "site/kiln/temp", "--payload", '{"value": 31}'))
    assert typed.out.splitlines() == [
        'site/kiln/temp {"value": 31}',
        "  -> hot: to alarms, tags kiln, key site/kiln/temp",
    ]
    cold = done(waybill("rules", "try", "devices", "--topic", "site/kiln/temp", "--payload", '{"value": 30}'))
    assert cold.out.splitlines()[-1] == "  filtered"


DOCUMENT = """version: 1
name: orders
source: {file: {path: logs/*.log}}
sink: {file: {path: out/orders.txt}}
parse: {format: json, fields: {n: int64, who: text}}
transforms:
- {filter: $.n > 1}
- {mask: {who: redact}}
- {cast: {n: text}}
errors: {tolerance: all}
"""


def test_a_document_is_tried_before_it_is_applied(waybill: Waybill, applied: Path) -> None:
    (applied / "logs" / "b.log").write_text('{"n": 1, "who": "Zoë"}\n{"n": 2, "who": "Ann"}\n{"n": "x"}\n')
    (applied / "orders.yaml").write_text(DOCUMENT)
    shown = done(waybill("try", "orders.yaml", "--steps", "--last", "3")).out.splitlines()
    assert shown == [
        '{"n": 1, "who": "Zoë"}',
        "  filtered",
        '{"n": 2, "who": "Ann"}',
        '  filter: {"n":2,"who":"Ann"}',
        '  mask: {"n":2,"who":"***"}',
        '  cast: {"n":"2","who":"***"}',
        '  -> {"n":"2","who":"***"}',
        '{"n": "x"}',
        "  rejected: Not of format json: n: not a whole number that int64 holds",
    ]
    told = done(waybill("try", "orders.yaml", "--payload", '{"n": 7}', "--json")).json
    assert told["document"] == "orders"
    assert [one["step"] for one in told["records"][0]["steps"]] == ["filter", "mask", "cast"]
    assert "orders" not in done(waybill("connectors", "list")).out
    assert not list((applied / "out").iterdir())


def test_a_plan_shows_what_each_step_makes_of_the_newest_records(waybill: Waybill, applied: Path) -> None:
    (applied / "logs" / "b.log").write_text('{"n": 1, "who": "Zoë"}\n{"n": 2, "who": "Ann"}\n')
    (applied / "orders.yaml").write_text(DOCUMENT)
    done(waybill("apply", "orders.yaml"))
    shown = done(waybill("plan", "orders", "--sample", "1")).out.splitlines()
    assert shown[shown.index("the newest records, behind each step:") + 1 :] == [
        '{"n": 2, "who": "Ann"}',
        '  filter: {"n":2,"who":"Ann"}',
        '  mask: {"n":2,"who":"***"}',
        '  cast: {"n":"2","who":"***"}',
        '  -> {"n":"2","who":"***"}',
    ]
    told = done(waybill("plan", "orders", "--sample", "2", "--json")).json
    assert [[step["step"] for step in one["steps"]] for one in told["sample"]] == [[], ["filter", "mask", "cast"]]
    assert "sample" not in done(waybill("plan", "orders", "--json")).json
    as_it_is = done(waybill("plan", "copy", "--sample", "1")).out.splitlines()
    assert as_it_is[-2:] == ['{"n": 2, "who": "Ann"}', "  -> as it is"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (DOCUMENT.replace("n > 1", "m > 1"), "$.m"),
        (DOCUMENT + "---\n" + DOCUMENT.replace("orders", "others"), "There are 2 documents: orders, others"),
    ],
)
def test_what_is_no_document_to_try_is_said(text: str, said: str, waybill: Waybill, applied: Path) -> None:
    (applied / "orders.yaml").write_text(text)
    typed = waybill("try", "orders.yaml")
    assert (typed.code, said in typed.err) == (2, True), typed.err
    missing = waybill("try", "orders.yml")
    assert (missing.code, "orders.yml" in missing.err) == (2, True), missing.err
