"""Dead letters: chosen, exported, replayed through the document of today, traced and discarded, with the real command
between real files and topics.
"""

from __future__ import annotations

import json
import stat
import time
from pathlib import Path
from typing import Any

import pytest

from connect_core.rocketmq import Client, ClientOptions, encode_batch
from connect_core.rocketmq.wire import properties
from tests.mqtt_brokers import Mosquitto
from tests.mqtt_devices import devices, listening
from tests.site import Site

FIELDS = {"heat": "int32", "n": "int64"}
TODAY = {"heat": "text", "n": "int64"}
SECRET = "4000-1234"


def apply(site: Site, fields: dict[str, str] = FIELDS, **more: Any) -> None:
    site.apply(
        "oven",
        {
            "source": {"file": {"path": "in/*.log"}},
            "sink": {"file": {"path": "out.log"}},
            "parse": {"format": "json", "fields": fields},
            "transforms": [{"set": {"line": "{file:name}"}}],
            "errors": {"tolerance": "all"},
            **more,
        },
    )


def feed(site: Site, *lines: str) -> None:
    (site.folder / "in").mkdir(exist_ok=True)
    with (site.folder / "in" / "a.log").open("a") as file:
        file.writelines(f"{line}\n" for line in lines)


def body(number: int, heat: object) -> str:
    return json.dumps({"n": number, "heat": heat})


def fed(site: Site) -> None:
    """A run with three dead letters, numbers 1 to 3: two that another document takes, and one that none takes."""
    apply(site)
    feed(site, body(0, 20), body(1, "hot"), f"no json {SECRET}", body(2, "hotter"), body(3, 30))
    site.waybill("run", "oven", "--engine", "inline")


def replay(site: Site, *words: str) -> Any:
    return site.json("dead-letters", "replay", "oven", *words, "--engine", "inline", "--yes")


def letters(site: Site, *words: str) -> list[Any]:
    found: list[Any] = site.json("dead-letters", "list", "oven", *words)["dead_letters"]
    return found


def replayed(told: Any) -> list[dict[str, Any]]:
    """What a replay has written, beside the file of the live stream."""
    (one,) = told["replays"]
    assert one["state"] == "done"
    (path,) = one["sink"].values()
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def test_rejected_records_go_through_the_document_of_today_once(bare_site: Site) -> None:
    site = bare_site
    fed(site)
    assert [one["id"] for one in letters(site)] == [3, 2, 1]
    apply(site, TODAY)
    told = replay(site, "--stage", "parse")
    assert replayed(told) == [
        {"heat": "hot", "line": "a.log", "n": 1},
        {"heat": "hotter", "line": "a.log", "n": 2},
    ]
    (one,) = told["replays"]
    assert (one["read"], one["delivered"], one["rejected"], one["revision"]) == (3, 2, 1, 2)
    (left,) = letters(site)
    assert (left["id"], left["state"], left["stage"]) == (2, "open", "parse")
    (receipt,) = site.json("receipts", "oven", "--stream", one["stream"])["receipts"]
    assert {each["replayed_by"] for each in letters(site, "--state", "replayed")} == {receipt["run"]}
    assert replay(site, "1")["left_out"] == {"replayed": 1}
    assert site.json("backfills", "list", "oven")["backfills"][0]["kind"] == "dead-letters"


def test_what_was_replayed_is_sent_again_by_again_alone(bare_site: Site) -> None:
    site = bare_site
    fed(site)
    apply(site, TODAY)
    replay(site, "1", "3")
    asked = site.waybill("dead-letters", "replay", "oven", "1", "3", "--again", code=2)
    assert "2 of them an earlier replay has delivered, or may have: they are sent once more" in asked
    assert [one["n"] for one in replayed(replay(site, "1", "3", "--again"))] == [1, 2]
    assert replay(site, "1", "3")["replays"] == []


def test_a_filter_of_today_leaves_out_what_it_leaves_out(bare_site: Site) -> None:
    site = bare_site
    fed(site)
    apply(site, TODAY, filter={"when": "$.n > 1"})
    told = replay(site, "--reason", "not of format")
    assert [one["n"] for one in replayed(told)] == [2]
    assert told["replays"][0]["filtered"] == 1
    assert [one["id"] for one in letters(site)] == [2]


def test_nothing_is_replayed_or_discarded_before_a_person_agrees(bare_site: Site) -> None:
    site = bare_site
    fed(site)
    for verb in ("replay", "discard"):
        said = site.waybill("dead-letters", verb, "oven", code=2)
        assert "3 dead letters of" in said
        assert "--yes" in said
        assert SECRET not in said
    assert [one["state"] for one in letters(site, "--state", "all")] == ["open"] * 3
    assert site.json("backfills", "list", "oven")["backfills"] == []


def test_what_is_discarded_is_marked_and_kept(bare_site: Site) -> None:
    site = bare_site
    fed(site)
    words = ("--partition", "a.log", "--since", "1h", "--until", "0s", "1", "2")
    told = site.json("dead-letters", "discard", "oven", *words, "--why", "noise", "--yes")
    assert told["discarded"] == 2
    assert [one["id"] for one in letters(site)] == [3]
    assert [one["id"] for one in letters(site, "--state", "discarded")] == [2, 1]
    assert site.json("dead-letters", "show", "oven", "2")["original"] == f"no json {SECRET}"
    apply(site, TODAY)
    assert [one["n"] for one in replayed(replay(site))] == [2]


def test_an_export_has_all_of_a_letter_and_shows_nothing(bare_site: Site) -> None:
    site = bare_site
    fed(site)
    path = site.folder / "letters.jsonl"
    said = site.waybill("dead-letters", "export", "oven", "--to", str(path))
    assert "3 dead letters exported" in said
    assert SECRET not in said
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [one["id"] for one in lines] == [1, 2, 3]
    assert lines[1]["payload"] == {"text": f"no json {SECRET}"}
    assert (lines[1]["stage"], lines[1]["whole"], lines[1]["headers"]) == ("parse", True, [])
    before = path.read_text()
    assert "already" in site.waybill("dead-letters", "export", "oven", "--to", str(path), code=2)
    assert path.read_text() == before
    out = site.waybill("dead-letters", "export", "oven", "--to", "-", "2")
    assert json.loads(out)["id"] == 2
    nowhere = site.waybill("dead-letters", "export", "oven", "--to", str(site.folder / "no" / "x"), code=2)
    assert "cannot be written" in nowhere
    assert list(site.folder.glob("*.part")) == []


def test_words_that_choose_nothing_are_refused(bare_site: Site) -> None:
    site = bare_site
    fed(site)
    assert "is not a time" in site.waybill("dead-letters", "list", "oven", "--since", "soon", code=2)
    assert "is none of open" in site.waybill("dead-letters", "list", "oven", "--state", "odd", code=2)
    assert "no dead letter 77" in site.waybill("dead-letters", "replay", "oven", "77", "--yes", code=2)
    assert replay(site, "--stage", "nowhere")["replays"] == []


def test_a_letter_that_is_gone_from_the_source_is_replayed_all_the_same(bare_site: Site) -> None:
    site = bare_site
    fed(site)
    (site.folder / "in" / "a.log").unlink()
    apply(site, TODAY)
    assert [one["n"] for one in replayed(replay(site))] == [1, 2]


def test_a_budget_of_rejects_counts_over_runs(bare_site: Site) -> None:
    site = bare_site
    apply(site, errors={"tolerance": "all", "budget": {"records": 2, "window": "1h"}})
    feed(site, body(0, "hot"), body(1, 1))
    site.waybill("run", "oven", "--engine", "inline")
    feed(site, body(2, "hot"), body(3, 3), body(4, f"hot {SECRET}"), body(5, 5))
    said = site.waybill("run", "oven", "--engine", "inline", code=5)
    assert "errors.budget allows 2 records in 1h" in said
    assert SECRET not in said
    assert [json.loads(line)["n"] for line in (site.folder / "out.log").read_text().splitlines()] == [1, 3]
    apply(site, errors={"tolerance": "all", "budget": {"records": 3, "window": "1h"}})
    site.waybill("run", "oven", "--engine", "inline")
    assert [json.loads(line)["n"] for line in (site.folder / "out.log").read_text().splitlines()] == [1, 3, 5]
    assert len(letters(site)) == 3


@pytest.mark.server
def test_a_replayed_message_arrives_with_all_that_it_had(inline_site: Site) -> None:
    site = inline_site
    origin = f"{site.topic}-in"
    texts = properties.encode({"KEYS": "k1", "TAGS": "paid", "region": "eu", "UNIQ_KEY": "0A0B0C0D0E0F00112233"})
    bad, good = json.dumps({"heat": "hot", "n": 1}).encode(), json.dumps({"heat": 1, "n": 2}).encode()
    document: dict[str, Any] = {
        "source": {"rocketmq": {"name_servers": site.name_servers, "topics": [origin]}},
        "sink": {"rocketmq": {"name_servers": [*site.name_servers], "topic": site.topic, "queues": 1}},
        "errors": {"tolerance": "all"},
    }
    with Client(ClientOptions(name_servers=tuple(site.name_servers))) as client:
        client.topics.create(origin, 1)
        [queue] = client.topics.write_queues(origin)
        sender, deadline = client.sender(queue), time.monotonic() + 60
        sender.submit(encode_batch([bad, good], [texts, texts]), deadline=deadline)
        sender.finish(deadline=deadline)
        site.apply("copy", {**document, "parse": {"format": "json", "fields": FIELDS}})
        site.waybill("run", "copy", "--engine", "inline")
        site.apply("copy", {**document, "parse": {"format": "json", "fields": TODAY}})
        told = site.json("dead-letters", "replay", "copy", "--engine", "inline", "--yes")
        assert told["replays"][0]["delivered"] == 1
        site.messages()
        [target] = client.topics.read_queues(site.topic)
        found = [m for part in client.read(target, 0, 9, deadline=deadline) for m in part.messages]
    assert [one.body for one in found] == [good, bad]
    live, again = (properties.decode(one.properties) for one in found)
    assert {**again, "WAYBILL": ""} == {**live, "WAYBILL": ""}
    stream = told["replays"][0]["stream"]
    assert again["WAYBILL"].split(":")[1:2] == [stream]
    verified = site.json("verify", "copy", "--stream", stream)
    assert (verified["same"], verified["ranges"]) == (1, 1)
    # Whatever names the record by: it was rejected, and is there since the replay.
    place = f"{target}:{found[1].queue_offset}"
    for words in (("--target", place), ("--source", f"{queue}:0")):
        [record] = site.json("trace", "copy", *words)["records"]
        assert record["offset"] == 0
        assert [(one["state"], one["places"]) for one in record["ranges"]] == [("rejected", []), ("delivered", [place])]
    run = record["ranges"][1]["run"]
    assert "dead-letters replay copy" in site.waybill("replay", "copy", "--run", run, code=2)


@pytest.mark.server
def test_what_a_broker_has_pushed_once_is_replayed(bare_site: Site, mosquitto: Mosquitto) -> None:
    """It was acknowledged, and never comes again: the ledger has it, with its topic."""
    site = bare_site

    def applied(heat: str) -> None:
        source = {"host": mosquitto.host, "port": mosquitto.port, "filters": ["ovens/+"]}
        site.apply(
            "pushed",
            {
                "source": {"mqtt": source},
                "sink": {"mqtt": {"host": mosquitto.host, "port": mosquitto.port, "topic": "copies/{topic[2]}"}},
                "parse": {"format": "json", "fields": {"heat": heat, "n": "int64"}},
                "errors": {"tolerance": "all"},
                "engine": "inline",
            },
        )

    applied("int32")
    site.waybill("run", "pushed")
    payloads = [body(n, "hot" if n % 2 else n).encode() for n in range(20)]
    with listening(mosquitto, "copies/#") as listener:
        with devices(mosquitto) as made:
            made.publish("ovens/a", payloads)
            made.wait()
        site.waybill("run", "pushed")
        assert listener.payloads(10) == payloads[::2]
        applied("text")
        (told,) = site.json("dead-letters", "replay", "pushed", "--yes")["replays"]
        assert (told["delivered"], told["rejected"], told["possible_duplicates"]) == (10, 0, 0)
        assert listener.payloads(20) == [*payloads[::2], *payloads[1::2]]
        assert {message.topic for message in listener.messages} == {"copies/a"}
    assert site.json("dead-letters", "list", "pushed")["dead_letters"] == []
