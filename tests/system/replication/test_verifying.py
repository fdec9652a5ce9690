"""`waybill verify` reads targets again, and compares them with the receipts, range by range. Where they differ it ends
with exit code 5."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from connect_core.rocketmq import Client, ClientOptions
from tests.faults.kit.processes import ended
from tests.faults.kit.topics import fill
from tests.site import Site

DIFFERS = 5


def moved(site: Site, *words: str, engine: str = "inline") -> dict[str, Any]:
    site.waybill("run", "a", "--engine", engine, *words)
    return verified(site)


def verified(site: Site, *words: str, code: int | None = 0) -> dict[str, Any]:
    with site.start("verify", "a", *words, "--json") as process:
        out, err = process.communicate(timeout=240)
    assert code is None or process.returncode == code, err
    told: dict[str, Any] = json.loads(out)
    return told


def counts(told: dict[str, Any]) -> dict[str, int]:
    return {name: told[name] for name in ("records", "differs", "gone", "uncompared")}


ALL_SAME = {"differs": 0, "gone": 0, "uncompared": 0}


def test_bytes_of_a_file(bare_site: Site) -> None:
    log, out = bare_site.folder / "a.log", bare_site.folder / "out.txt"
    log.write_text("".join(f"line {number}\n" for number in range(1000)))
    bare_site.apply("a", {"source": {"file": {"path": "*.log"}}, "sink": {"file": {"path": "out.txt"}}})
    assert counts(moved(bare_site)) == {"records": 1000, **ALL_SAME}
    with log.open("a") as file:
        file.write("one more\n")
    assert moved(bare_site)["same"] == 2
    out.write_text(out.read_text().replace("line 500\n", "line 5oo\n"))
    told = verified(bare_site, code=DIFFERS)
    assert (told["same"], told["differs"], told["others"][0]["begin"]) == (1, 1, 0)
    assert str(out) in told["others"][0]["place"]
    newest = bare_site.json("runs", "a")["runs"][0]["id"]
    assert verified(bare_site, "--run", newest)["same"] == 1
    assert verified(bare_site, "--since", "0.001s")["ranges"] == 0
    half = verified(bare_site, "--share", "50%", code=None)
    assert (half["ranges"], half["settled"]) == (1, 2)
    assert "--share chooses by chance" in bare_site.waybill("verify", "a", "--share", "50%", "--repair", code=2)
    again = bare_site.waybill("verify", "a", code=DIFFERS)
    assert f"waybill backfill a --range '{log}:0-" in again
    assert "to another target" in again
    assert "--repair" not in again
    assert "a file can have one writer only" in bare_site.waybill("verify", "a", "--repair", "--yes", code=2)
    bare_site.waybill("backfill", "a", "--range", f"{log}:0-{log.stat().st_size}", "--engine", "inline")
    assert verified(bare_site, code=DIFFERS)["repaired"] == 0, "that is another file"
    out.unlink()
    out.mkdir()
    assert {one["what"] for one in verified(bare_site, code=DIFFERS)["others"]} == {"It is no file"}
    out.rmdir()
    assert {one["what"] for one in verified(bare_site, code=DIFFERS)["others"]} == {"The file is not there"}


def test_lines_of_files_that_stand_between_each_other(bare_site: Site) -> None:
    for name in ("b", "c"):
        (bare_site.folder / f"{name}.log").write_text("".join(f"{name} {number}\n" for number in range(400)))
    bare_site.apply("a", {"source": {"file": {"path": "*.log"}}, "sink": {"file": {"path": "out.txt"}}})
    with bare_site.start("run", "a", "--engine", "inline", "--window", "4s") as run:
        for number in range(400, 440):
            for name in ("b", "c"):
                with (bare_site.folder / f"{name}.log").open("a") as file:
                    file.write(f"{name} {number}\n")
        assert ended(run) == 0
    assert counts(verified(bare_site)) == {"records": 880, **ALL_SAME}
    out = bare_site.folder / "out.txt"
    out.write_text(out.read_text().replace("b 439\n", "b 438\n"))
    assert verified(bare_site, code=DIFFERS)["differs"]


RULES = [
    {"name": "all", "tags": "{$.kind}", "keys": "{$.id}"},
    {"name": "odd", "when": "$.odd", "to": "TOPIC-odd", "tags": "odd"},
]


def lines(begin: int, end: int) -> str:
    return "".join(
        json.dumps({"id": f"k-{number}", "kind": "überall", "odd": bool(number % 2), "x": "x" * (number % 50)}) + "\n"
        for number in range(begin, end)
    )


@pytest.mark.server
def test_messages_of_topics(site: Site) -> None:
    """By key, with rules, so that a range stands in several queues of two topics; killed, and taken over."""
    rules = json.loads(json.dumps(RULES).replace("TOPIC", site.topic))
    sink = {"rocketmq": {"name_servers": site.name_servers, "topic": site.topic, "queues": 3, "order": "key"}}
    (site.folder / "a.log").write_text(lines(0, 3000))
    site.apply("a", {"source": {"file": {"path": "*.log"}}, "sink": sink, "rules": rules})
    assert counts(moved(site, engine="spark")) == {"records": 4500, **ALL_SAME}
    with (site.folder / "a.log").open("a") as file:
        file.write(lines(3000, 6000))
    site.fault("before-receipt")
    site.waybill("run", "a", "--engine", "inline", code=1)
    told = moved(site)
    assert counts(told) == {"records": 9000, **ALL_SAME}
    (newest, *_) = site.json("receipts", "a")["receipts"]
    assert newest["deduplicated"] > 0, "else nothing was found that a former attempt had written"
    with Client(ClientOptions(name_servers=tuple(site.name_servers))) as client:
        client.topics.delete(f"{site.topic}-odd")
    told = verified(site, code=DIFFERS)
    assert told["differs"] == told["ranges"]
    assert "of 4,500 records are there" in told["others"][0]["what"]


@pytest.mark.server
def test_messages_that_were_copied_with_what_they_carry(site: Site) -> None:
    bodies = [b"body %d" % number for number in range(200)]
    each = b"tenant\x01t%d\x02\xc3\xbc\x01\xc3\x9f\x02KEYS\x01k%d\x02TAGS\x01t\x02"
    carried = [each % (number % 3, number) for number in range(200)]
    fill(site.name_servers, f"{site.topic}-in", [bodies], [carried])
    source = {"rocketmq": {"name_servers": list(site.name_servers), "topics": [f"{site.topic}-in"]}}
    sink = {"rocketmq": {"name_servers": list(site.name_servers), "topic": site.topic}}
    site.apply("a", {"source": source, "sink": sink})
    assert counts(moved(site)) == {"records": 200, **ALL_SAME}


@pytest.mark.server
def test_what_differs_is_sent_again_and_counts_as_repaired(inline_site: Site) -> None:
    site = inline_site
    rules = json.loads(json.dumps(RULES).replace("TOPIC", site.topic))
    sink = {"rocketmq": {"name_servers": site.name_servers, "topic": site.topic, "queues": 2, "order": "key"}}
    (site.folder / "a.log").write_text(lines(0, 400))
    site.apply("a", {"source": {"file": {"path": "*.log"}}, "sink": sink, "rules": rules})
    assert counts(moved(site)) == {"records": 600, **ALL_SAME}
    with Client(ClientOptions(name_servers=tuple(site.name_servers))) as client:
        client.topics.delete(f"{site.topic}-odd")
    assert "Add --yes" in site.waybill("verify", "a", "--repair", code=2)
    assert verified(site, code=DIFFERS)["repaired"] == 0
    site.fault("executed")
    ended(site.start("verify", "a", "--repair", "--yes", "--engine", "inline"))
    [left] = site.json("backfills", "list", "a")["backfills"]
    assert left["stream"] in site.waybill("verify", "a", "--repair", "--yes", "--engine", "inline", code=2)
    site.waybill("backfills", "resume", "a", left["stream"], "--engine", "inline")
    told = verified(site)
    assert (told["repaired"], told["differs"]) == (told["ranges"], 0)
    assert "has sent the range again" in told["others"][0]["what"]
    odd = [json.loads(body)["id"] for body in replace(site, topic=f"{site.topic}-odd").messages()]
    assert sorted(odd) == sorted(f"k-{number}" for number in range(1, 400, 2))
    assert verified(site, "--stream", "all")["differs"] == 0
    with Client(ClientOptions(name_servers=tuple(site.name_servers))) as client:
        client.topics.delete(f"{site.topic}-odd")
    assert verified(site, code=DIFFERS)["repaired"] == 0, "what was sent again is lost, too"
    assert verified(site, "--repair", "--yes", "--engine", "inline")["differs"] == 0


@pytest.mark.server
def test_nothing_is_sent_again_from_a_source_that_was_created_again(inline_site: Site) -> None:
    """It has other records under the offsets of what differs."""
    site, source = inline_site, f"{inline_site.topic}-in"
    fill(site.name_servers, source, [[b"old %d" % number for number in range(50)]])
    options = {"name_servers": list(site.name_servers), "topics": [source]}
    into = {"name_servers": list(site.name_servers), "topic": site.topic, "on_replaced": "continue"}
    site.apply("a", {"source": {"rocketmq": options}, "sink": {"rocketmq": into}})
    assert counts(moved(site)) == {"records": 50, **ALL_SAME}
    with Client(ClientOptions(name_servers=tuple(site.name_servers))) as client:
        client.topics.delete(site.topic)
        client.topics.delete(source)
    fill(site.name_servers, source, [[b"new %d" % number for number in range(80)]])
    site.waybill("run", "a", "--engine", "inline", "--accept-gaps")
    (former,) = [one for one in verified(site, code=DIFFERS)["others"] if one["verdict"] == "differs"]
    assert (former["end"], former["in_source"]) == (50, False)
    site.waybill("verify", "a", "--repair", "--yes", "--engine", "inline", code=2)
    assert sorted(site.messages()) == sorted(b"new %d" % number for number in range(80))


@pytest.mark.server
def test_what_another_encoding_would_make_is_not_sent_again(inline_site: Site) -> None:
    """The target had JSON; a repair would make Avro of it."""
    site, source = inline_site, f"{inline_site.topic}-in"
    fill(site.name_servers, source, [[b'{"id":%d}' % number for number in range(50)]])
    document = {
        "source": {"rocketmq": {"name_servers": list(site.name_servers), "topics": [source]}},
        "sink": {"rocketmq": {"name_servers": list(site.name_servers), "topic": site.topic, "on_replaced": "continue"}},
        "parse": {"format": "json", "fields": {"id": "int64"}},
    }
    site.apply("a", {**document, "encode": {"format": "json"}})
    assert counts(moved(site)) == {"records": 50, **ALL_SAME}
    site.apply("a", {**document, "encode": {"format": "avro"}})
    with Client(ClientOptions(name_servers=tuple(site.name_servers))) as client:
        client.topics.delete(site.topic)
    (former,) = [one for one in verified(site, code=DIFFERS)["others"] if one["verdict"] == "differs"]
    assert (former["in_source"], former["in_target"]) == (True, False)
    site.waybill("verify", "a", "--repair", "--yes", "--engine", "inline", code=2)
