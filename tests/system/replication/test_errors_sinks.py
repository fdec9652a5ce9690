"""`errors.sink`: rejected records also go to a second target, each once, with the real command between real files and
topics.
"""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from connect_core.rocketmq import Client, ClientOptions, Queue, encode_batch
from connect_core.rocketmq.wire import properties
from tests.faults.kit.processes import ended, wait_for
from tests.mqtt_brokers import Mosquitto
from tests.mqtt_devices import devices, listening
from tests.site import Site

FIELDS = {"heat": "int32", "n": "int64"}


def apply(site: Site, errors: dict[str, Any], **more: Any) -> None:
    site.apply(
        "oven",
        {
            "source": {"file": {"path": "in/*.log"}},
            "sink": {"file": {"path": "out.log"}},
            "parse": {"format": "json", "fields": FIELDS},
            "errors": {"tolerance": "all", **errors},
            **more,
        },
    )


AWAY = 3
"""The exit code of a run whose target does not answer."""
TO_FILE = {"sink": {"file": {"path": "bad.log"}}}


def feed(site: Site, *lines: str) -> None:
    (site.folder / "in").mkdir(exist_ok=True)
    with (site.folder / "in" / "a.log").open("a") as file:
        file.writelines(f"{line}\n" for line in lines)


def body(number: int, heat: object) -> str:
    return json.dumps({"n": number, "heat": heat})


def run(site: Site) -> Any:
    return site.json("run", "oven", "--engine", "inline")


def lines(site: Site, name: str) -> list[str]:
    path = site.folder / name
    return path.read_text().splitlines() if path.exists() else []


def letters(site: Site) -> list[Any]:
    found: list[Any] = site.json("dead-letters", "list", "oven", "--state", "all")["dead_letters"]
    return found[::-1]


def receipts(site: Site) -> list[Any]:
    found: list[Any] = site.json("receipts", "oven", "--stream", "errors-sink")["receipts"]
    return found


def test_rejected_records_go_to_a_second_file_once(bare_site: Site) -> None:
    site = bare_site
    feed(site, body(0, 20), body(1, "hot"), "no json", body(2, 30))
    apply(site, {})
    run(site)
    apply(site, TO_FILE)
    feed(site, body(3, "hotter"), body(4, 10), "none")
    told = run(site)
    assert (told["delivered"], told["sent_to_errors_sink"], told["refused_by_errors_sink"]) == (1, 2, 0)
    assert lines(site, "bad.log") == [body(3, "hotter"), "none"], "what was rejected before stays in the ledger only"
    run(site)
    feed(site, "more")
    run(site)
    assert lines(site, "bad.log") == [body(3, "hotter"), "none", "more"]
    assert lines(site, "out.log") == [body(0, 20), body(2, 30), body(4, 10)]
    assert [one["delivered"] for one in receipts(site)][::-1] == [2, 1]
    assert [(one["state"], bool(one["errors_sink_run"])) for one in letters(site)] == [
        *[("open", False)] * 2,
        *[("open", True)] * 3,
    ]
    assert site.json("verify", "oven", "--stream", "all")["differs"] == 0


def test_a_target_that_is_away_stops_no_live_record_and_gets_all_later(bare_site: Site) -> None:
    site = bare_site
    feed(site, body(0, 20), "no json")
    apply(site, {"sink": {"rocketmq": {"name_servers": "127.0.0.1:9", "topic": "bad"}}})
    assert "127.0.0.1:9" in site.waybill("run", "oven", "--engine", "inline", code=AWAY)
    assert lines(site, "out.log") == [body(0, 20)]
    feed(site, body(1, 21), "none")
    site.waybill("run", "oven", "--engine", "inline", code=AWAY)
    assert lines(site, "out.log") == [body(0, 20), body(1, 21)], "the next run moves live records first"
    assert [one["errors_sink"] for one in letters(site)] == ["waiting", "waiting"]
    apply(site, TO_FILE)
    run(site)
    assert lines(site, "bad.log") == ["no json", "none"]
    assert [one["errors_sink"] for one in letters(site)] == ["sent", "sent"]


def test_what_waits_stays_where_the_document_names_no_second_target_any_more(bare_site: Site) -> None:
    site = bare_site
    feed(site, "no json")
    apply(site, {"sink": {"rocketmq": {"name_servers": "127.0.0.1:9", "topic": "bad"}}})
    site.waybill("run", "oven", "--engine", "inline", code=AWAY)
    apply(site, {})
    feed(site, "none")
    run(site)
    assert [one["errors_sink"] for one in letters(site)] == ["waiting", ""]
    apply(site, TO_FILE)
    run(site)
    assert lines(site, "bad.log") == ["no json"]


def test_what_a_replay_rejects_again_is_not_sent_again(bare_site: Site) -> None:
    site = bare_site
    feed(site, "no json", body(1, "hot"))
    apply(site, TO_FILE)
    run(site)
    apply(site, TO_FILE, parse={"format": "json", "fields": {"heat": "text", "n": "int64"}})
    site.json("dead-letters", "replay", "oven", "--engine", "inline", "--yes")
    run(site)
    assert lines(site, "bad.log") == ["no json", body(1, "hot")]
    assert [(one["state"], one["errors_sink"]) for one in letters(site)] == [("open", "sent"), ("replayed", "sent")]


def test_what_a_backfill_rejects_goes_there_with_the_next_run(bare_site: Site) -> None:
    site = bare_site
    feed(site, "no json", body(1, 20))
    apply(site, TO_FILE)
    run(site)
    [settled] = site.json("receipts", "oven")["receipts"]
    site.json("backfill", "oven", "--range", f"{settled['partition']}:0-{settled['end']}", "--engine", "inline")
    assert lines(site, "bad.log") == ["no json"]
    run(site)
    assert lines(site, "bad.log") == ["no json", "no json"]


def test_a_connector_that_is_paused_sends_nothing(bare_site: Site) -> None:
    site = bare_site
    feed(site, "no json")
    apply(site, {"sink": {"rocketmq": {"name_servers": "127.0.0.1:9", "topic": "bad"}}})
    site.waybill("run", "oven", "--engine", "inline", code=AWAY)
    apply(site, TO_FILE)
    site.waybill("connectors", "pause", "oven")
    site.waybill("run", "oven", "--engine", "inline", code=2)
    assert lines(site, "bad.log") == []
    site.waybill("connectors", "resume", "oven")
    run(site)
    assert lines(site, "bad.log") == ["no json"]


def test_nothing_is_rejected_into_a_topic_that_is_read(bare_site: Site) -> None:
    site = bare_site
    rocketmq = {"name_servers": "127.0.0.1:9"}
    document = {
        "source": {"rocketmq": {**rocketmq, "topics": ["orders"]}},
        "sink": {"file": {"path": "out.log"}},
        "errors": {"tolerance": "all", "sink": {"rocketmq": {**rocketmq, "topic": "orders"}}},
    }
    path = site.folder / "loop.json"
    path.write_text(json.dumps({"version": 1, "name": "loop", **document}))
    assert "errors.sink.rocketmq.topic" in site.waybill("check", str(path), code=2)


def test_a_probe_asks_the_second_target_too(bare_site: Site) -> None:
    site = bare_site
    feed(site, "no json")
    apply(site, {"sink": {"rocketmq": {"name_servers": "127.0.0.1:9", "topic": "bad"}}})
    with site.start("check", "oven.yaml", "--probe") as process:
        said, _ = process.communicate(timeout=60)
    assert process.returncode == AWAY
    assert "errors.sink: " in said


@pytest.mark.fault(costly=True)
def test_while_a_window_lasts_dead_letters_go_on_their_way(bare_site: Site) -> None:
    site = bare_site
    feed(site, body(0, 20), "no json")
    apply(site, TO_FILE)
    driver = site.start("run", "oven", "--engine", "inline", "--window", "35s")
    try:
        wait_for(lambda: lines(site, "bad.log") == ["no json"], "the first dead letter", 40)
        feed(site, body(1, 21), "none")
        wait_for(lambda: lines(site, "bad.log") == ["no json", "none"], "the second one", 40)
        assert driver.poll() is None
        assert lines(site, "out.log") == [body(0, 20), body(1, 21)]
    finally:
        assert ended(driver, limit_s=90) == 0


@pytest.mark.fault(costly=True)
def test_a_restored_ledger_sends_what_it_has_forgotten(bare_site: Site) -> None:
    site = bare_site
    feed(site, "no json")
    apply(site, TO_FILE)
    run(site)
    ledger = site.home / "ledger.db"
    backup = ledger.read_bytes()
    feed(site, "none")
    run(site)
    assert lines(site, "bad.log") == ["no json", "none"]
    for path in site.home.glob("ledger.db*"):
        path.unlink()
    ledger.write_bytes(backup)
    feed(site, "more", body(1, 20))
    run(site)
    assert lines(site, "bad.log") == ["no json", "none", "more"]
    assert lines(site, "out.log") == [body(1, 20)]
    feed(site, "last")
    run(site)
    assert lines(site, "bad.log") == ["no json", "none", "more", "last"]
    assert site.json("verify", "oven", "--stream", "all")["differs"] == 0


def sent_to(client: Client, topic: str, *bodies: bytes) -> Queue:
    """One queue of a new topic, with these messages, each with a key and a header."""
    client.topics.create(topic, 1)
    [queue] = client.topics.write_queues(topic)
    sender, deadline = client.sender(queue), time.monotonic() + 60
    texts = properties.encode({"KEYS": "k1", "region": "eu"})
    sender.submit(encode_batch(list(bodies), [texts] * len(bodies)), deadline=deadline)
    sender.finish(deadline=deadline)
    return queue


@pytest.mark.server
def test_a_message_arrives_as_it_was_with_what_was_wrong_with_it(inline_site: Site) -> None:
    site = inline_site
    origin, bad = f"{site.topic}-in", f"{site.topic}-bad"
    with Client(ClientOptions(name_servers=tuple(site.name_servers))) as client:
        queue = sent_to(client, origin, body(0, "hot").encode(), body(1, 20).encode())
        site.apply(
            "oven",
            {
                "source": {"rocketmq": {"name_servers": site.name_servers, "topics": [origin]}},
                "sink": {"rocketmq": {"name_servers": [*site.name_servers], "topic": site.topic, "queues": 1}},
                "parse": {"format": "json", "fields": FIELDS},
                "errors": {
                    "tolerance": "all",
                    "sink": {"rocketmq": {"name_servers": [*site.name_servers], "topic": bad, "queues": 1}},
                    "headers": "connect",
                },
            },
        )
        assert site.json("run", "oven", "--engine", "inline")["delivered"] == 1
        site.messages()
        [target] = client.topics.read_queues(bad)
        pages = client.read(target, 0, 9, deadline=time.monotonic() + 60)
        [found] = [message for page in pages for message in page.messages]
    assert found.body == body(0, "hot").encode()
    had = properties.decode(found.properties)
    assert (had["KEYS"], had["region"]) == ("k1", "eu")
    told = {name.removeprefix("__connect.errors."): had[name] for name in had if name.startswith("__connect.")}
    assert "hot" not in told.pop("exception.message")
    assert told == {
        "topic": origin,
        "partition": str(queue),
        "offset": "0",
        "connector.name": "oven",
        "task.id": "0",
        "stage": "parse",
        "exception.class.name": letters(site)[0]["kind"],
    }
    assert had["WAYBILL"].split(":")[1] == "errors-sink"
    assert site.json("verify", "oven", "--stream", "errors-sink")["same"] == 1
    [record] = site.json("trace", "oven", "--source", f"{queue}:0")["records"]
    assert [one["state"] for one in record["ranges"]] == ["rejected"]


@pytest.mark.server
def test_a_record_that_the_second_target_cannot_take_holds_up_nothing(inline_site: Site) -> None:
    """A line of a file has no line feed in it."""
    site = inline_site
    origin = f"{site.topic}-in"
    with Client(ClientOptions(name_servers=tuple(site.name_servers))) as client:
        sent_to(client, origin, b"one", b"two\nlines", b"three")
    apply(site, TO_FILE, source={"rocketmq": {"name_servers": [*site.name_servers], "topics": [origin]}})
    told = run(site)
    assert (told["sent_to_errors_sink"], told["refused_by_errors_sink"]) == (2, 1)
    assert lines(site, "bad.log") == ["one", "three"]
    assert [one["errors_sink"] for one in letters(site)] == ["sent", "refused", "sent"]
    assert "EmbeddedNewline" in letters(site)[1]["errors_sink_refused"]
    assert len(letters(site)) == 3
    run(site)
    assert lines(site, "bad.log") == ["one", "three"]


def test_a_run_that_fails_sends_its_dead_letters(bare_site: Site) -> None:
    site = bare_site
    feed(site, "no json", body(0, 20), "none", body(1, 21))
    apply(site, {**TO_FILE, "tolerance": 1})
    assert "a.log" in site.waybill("run", "oven", "--engine", "inline", code=5)
    assert lines(site, "bad.log") == ["no json"]
    assert lines(site, "out.log") == [body(0, 20)]


@pytest.mark.server
@pytest.mark.fault(costly=True)
def test_what_a_broker_pushes_is_rejected_into_another_topic_while_a_window_lasts(
    bare_site: Site, mosquitto: Mosquitto
) -> None:
    """Source, sink and second target are sessions of one broker, and none disturbs another."""
    site = bare_site
    server = {"host": mosquitto.host, "port": mosquitto.port}
    site.apply(
        "oven",
        {
            "source": {"mqtt": {**server, "filters": ["ovens/+"]}},
            "sink": {"mqtt": {"host": mosquitto.host, "port": mosquitto.port, "topic": "copies/{topic[2]}"}},
            "parse": {"format": "json", "fields": FIELDS},
            "errors": {
                "tolerance": "all",
                "sink": {"mqtt": {"host": mosquitto.host, "port": mosquitto.port, "topic": "rejects/{topic[2]}"}},
                "headers": "connect",
            },
            "engine": "inline",
        },
    )
    site.waybill("run", "oven")
    payloads = [body(n, "hot" if n % 2 else n).encode() for n in range(40)]
    with listening(mosquitto, "copies/#") as copies, listening(mosquitto, "rejects/#") as rejects:
        driver = site.start("run", "oven", "--window", "30s")
        try:
            with devices(mosquitto) as made:
                made.publish("ovens/a", payloads[:20])
                made.wait()
                assert rejects.payloads(10) == payloads[1:20:2]
                assert driver.poll() is None
                made.publish("ovens/a", payloads[20:])
                made.wait()
                assert rejects.payloads(20) == payloads[1::2]
        finally:
            assert ended(driver, limit_s=90) == 0
        assert copies.payloads(20) == payloads[::2]
        assert {message.topic for message in rejects.messages} == {"rejects/a"}
    assert {one["errors_sink"] for one in letters(site)} == {"sent"}
    assert all(one["possible_duplicates"] == 0 for one in receipts(site))


def test_what_was_begun_in_a_target_that_does_not_come_back_is_redirected(bare_site: Site) -> None:
    """Its folder is gone: the range that was begun there stays open."""
    site = bare_site
    feed(site, "no json", body(0, 20), "none")
    (site.folder / "rejects").mkdir()
    apply(site, {"sink": {"file": {"path": "rejects/bad.log"}}})
    site.fault("batch-written", "kill", 1)
    site.waybill("run", "oven", "--engine", "inline", code=1)
    assert {one["errors_sink"] for one in letters(site)} == {"waiting"}
    for path in (site.folder / "rejects").iterdir():
        path.unlink()
    (site.folder / "rejects").rmdir()
    (site.folder / "rejects").write_text("no folder")
    apply(site, TO_FILE)
    site.waybill("run", "oven", "--engine", "inline", code=AWAY)
    assert lines(site, "bad.log") == []
    assert site.json("dead-letters", "redirect", "oven", "--yes")["redirected"] == 2
    run(site)
    assert lines(site, "bad.log") == ["no json", "none"]
    assert site.json("dead-letters", "redirect", "oven", "--yes")["redirected"] == 0
