"""What a broker does not take: records that become dead letters, and runs that stop, with Mosquitto."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.mqtt_brokers import Mosquitto
from tests.mqtt_devices import listening
from tests.site import Site
from tests.system.mqtt.test_mqtt_publishing import COSTLY, TOO_LARGE_IS_SAID, append, applied, place, run

pytestmark = pytest.mark.server


@pytest.fixture
def strict(tmp_path: Path) -> Any:
    """Starts a Mosquitto with more settings; ends it behind the test."""
    started: list[Mosquitto] = []

    def start(of_the_listener: str = "", **settings: str) -> Mosquitto:
        broker = Mosquitto(tmp_path / f"strict-{len(started)}", settings=settings, listeners=of_the_listener)
        broker.start()
        started.append(broker)
        return broker

    yield start
    for broker in started:
        broker.kill()


@COSTLY
def test_a_record_that_is_too_large_is_a_dead_letter(bare_site: Site, strict: Any) -> None:
    broker = strict(max_packet_size="2000")
    append(bare_site, [b"small", b"x" * 3000, b"last"])
    applied(bare_site, place(broker, "f/small"), errors={"tolerance": 5})
    with listening(broker, "f/small") as listener:
        run(bare_site)
        assert listener.payloads(2) == [b"small", b"last"]
    [letter] = bare_site.json("dead-letters", "list", "out")["dead_letters"]
    assert letter["kind"] == "MessageTooLarge"
    assert "the broker takes 2000" in letter["message"]


def test_a_record_that_the_broker_refuses_is_a_dead_letter(bare_site: Site, strict: Any) -> None:
    broker = strict(**TOO_LARGE_IS_SAID)
    lines = [b"%d" % n for n in range(200)]
    append(bare_site, [*lines[:90], b"x" * 3000, *lines[90:]])
    applied(bare_site, place(broker, "f/refused", progress_every=32), errors={"tolerance": 5})
    with listening(broker, "f/refused") as listener:
        run(bare_site)
        run(bare_site)
        assert listener.payloads(200) == lines
    [letter] = bare_site.json("dead-letters", "list", "out")["dead_letters"]
    assert (letter["stage"], letter["kind"]) == ("write", "RefusedPublish")
    assert "Packet too large" in letter["message"]
    receipts = bare_site.json("receipts", "out")["receipts"]
    assert [sum(one[name] for one in receipts) for name in ("delivered", "rejected", "possible_duplicates")] == [
        200,
        1,
        0,
    ]


def test_all_records_that_the_broker_refuses_in_one_burst_are_dead_letters(bare_site: Site, strict: Any) -> None:
    """Their answers are read at once."""
    broker = strict(**TOO_LARGE_IS_SAID)
    append(bare_site, [b"first", *([b"x" * 3000] * 6), b"last"])
    applied(bare_site, place(broker, "f/burst"), errors={"tolerance": "all"})
    with listening(broker, "f/burst") as listener:
        run(bare_site)
        assert listener.payloads(2) == [b"first", b"last"]
    assert len(bare_site.json("dead-letters", "list", "out")["dead_letters"]) == 6
    receipts = bare_site.json("receipts", "out")["receipts"]
    assert [sum(one[name] for one in receipts) for name in ("delivered", "rejected")] == [2, 6]


def test_a_record_that_the_broker_refuses_stops_its_own_partition(bare_site: Site, strict: Any) -> None:
    broker = strict(**TOO_LARGE_IS_SAID)
    for name, bodies in (("a", [b"a0", b"x" * 3000, b"a1"]), ("b", [b"b0", b"b1"]), ("c", [b"c0"])):
        (bare_site.folder / f"{name}.txt").write_bytes(b"".join(body + b"\n" for body in bodies))
    document = {"source": {"file": {"path": "*.txt"}}, "sink": place(broker, "f/one")}
    bare_site.apply("out", document)
    with listening(broker, "f/one") as listener:
        assert "stage write" in run(bare_site, code=5)
        run(bare_site, code=5)  # as often as it is tried
        [aside] = bare_site.json("connectors", "show", "out")["aside"]
        assert (Path(aside["partition"]).name, aside["state"]) == ("a.txt", "quarantined")
        bare_site.apply("out", {**document, "errors": {"tolerance": 1}})
        run(bare_site)
        there = Counter(bytes(one.payload) for one in listener.everything())
    receipts = bare_site.json("receipts", "out")["receipts"]
    again = sum(one["possible_duplicates"] for one in receipts)
    assert there.keys() == {b"a0", b"a1", b"b0", b"b1", b"c0"}
    assert there.total() - len(there) <= again
    assert [there[one] for one in (b"a0", b"b0", b"b1", b"c0")] == [1, 1, 1, 1]


@COSTLY
def test_a_broker_without_retained_messages_is_refused_before_anything_is_sent(bare_site: Site, strict: Any) -> None:
    broker = strict(retain_available="false")
    append(bare_site, [b"a"])
    applied(bare_site, place(broker, "f/none"))
    with listening(broker, "f/none") as listener:
        assert "keeps no retained messages" in run(bare_site, code=2)
        assert listener.everything() == []


@COSTLY
@pytest.mark.parametrize("qos", [1, 2])
def test_a_topic_that_the_user_may_not_publish_to(bare_site: Site, strict: Any, tmp_path: Path, qos: int) -> None:
    """Records before it are delivered once, however often it is tried."""
    (tmp_path / "acl").write_text("topic readwrite waybill/#\ntopic readwrite f/#\n")
    broker = strict(f"acl_file {tmp_path}/acl")
    append(bare_site, [b"a", b"b"])
    applied(bare_site, place(broker, "f/open"))
    with listening(broker, "f/#") as listener:
        run(bare_site)
        applied(bare_site, place(broker, "closed", qos=qos))
        append(bare_site, [b"c"])
        told = run(bare_site, code=6)
        assert "refuses a message for topic closed: Not authorized" in told
        assert "Let this user publish" in told
        applied(bare_site, place(broker, "f/open"))
        assert "refuses a message" in run(bare_site, code=6), "what is open is finished with what it pinned"
        assert listener.payloads(2) == [b"a", b"b"]


def refusing(site: Site, strict: Any, folder: Path, **more: Any) -> Mosquitto:
    """A broker that lets nobody publish to closed/#, and a connector by whose lines some go there."""
    (folder / "acl").write_text("topic readwrite waybill/#\ntopic readwrite f/#\n")
    broker: Mosquitto = strict(f"acl_file {folder}/acl", max_queued_messages="1000")
    append(site, [b'{"to": "%s", "n": %d}' % (b"closed" if n in (7, 8, 40) else b"f", n) for n in range(60)])
    rules = [{"name": "r", "to": "{$.to}/x"}]
    applied(site, place(broker, "f/none", progress_every=16, **more.pop("sink", {})), rules=rules, **more)
    return broker


def numbers(listener: Any, count: int) -> list[int]:
    return [json.loads(payload)["n"] for payload in listener.payloads(count)]


@pytest.mark.parametrize("qos", [1, 2])
def test_records_of_a_topic_that_is_refused_are_dead_letters_where_the_document_says_so(
    bare_site: Site, strict: Any, tmp_path: Path, qos: int
) -> None:
    sink = {"on_refused": "reject", "qos": qos}
    broker = refusing(bare_site, strict, tmp_path, sink=sink, errors={"tolerance": 5})
    with listening(broker, "f/#") as listener:
        run(bare_site)
        run(bare_site)
        assert numbers(listener, 57) == [n for n in range(60) if n not in (7, 8, 40)]
    letters = bare_site.json("dead-letters", "list", "out")["dead_letters"]
    assert {(one["stage"], one["kind"]) for one in letters} == {("write", "RefusedPublish")}
    assert len(letters) == 3
    assert all("closed/x: Not authorized" in one["message"] for one in letters)
    receipts = bare_site.json("receipts", "out")["receipts"]
    counts = ("read", "rejected", "passed", "delivered", "possible_duplicates")
    assert [sum(one[name] for one in receipts) for name in counts] == [60, 3, 57, 57, 0]


def test_a_topic_that_is_refused_stops_the_run_unless_the_document_says_otherwise(
    bare_site: Site, strict: Any, tmp_path: Path
) -> None:
    """What is tolerated of records says nothing of rights."""
    refusing(bare_site, strict, tmp_path, errors={"tolerance": "all"})
    assert "on_refused: reject" in run(bare_site, code=6)
    assert bare_site.json("dead-letters", "list", "out")["dead_letters"] == []


def test_more_refused_records_than_are_tolerated_stop_their_partition(
    bare_site: Site, strict: Any, tmp_path: Path
) -> None:
    broker = refusing(bare_site, strict, tmp_path, sink={"on_refused": "reject"}, errors={"tolerance": 2})
    with listening(broker, "f/#") as listener:
        assert "a run tolerates 2 of each partition" in run(bare_site, code=5)
        assert numbers(listener, 38)[:38] == [n for n in range(40) if n not in (7, 8)]


def test_refused_records_close_together_stop_no_partition_for_ever(
    bare_site: Site, strict: Any, tmp_path: Path
) -> None:
    """Each run goes past as many as are tolerated, though more were on their way when the first was refused."""
    broker = refusing(bare_site, strict, tmp_path, sink={"on_refused": "reject"}, errors={"tolerance": 1})
    with listening(broker, "f/#") as listener:
        for settled in (0, 1, 2):
            assert "a run tolerates 1 of each partition" in run(bare_site, code=5)
            assert len(bare_site.json("dead-letters", "list", "out")["dead_letters"]) == settled
        run(bare_site)
        assert {*numbers(listener, 57)} >= {n for n in range(59) if n not in (7, 8, 40)}
    assert len(bare_site.json("dead-letters", "list", "out")["dead_letters"]) == 3


@COSTLY
def test_what_a_probe_tells(bare_site: Site, strict: Any) -> None:
    broker = strict(max_packet_size="2000", max_inflight_messages="20")
    path = bare_site.folder / "out.yaml"
    document = {"version": 1, "name": "out", "source": {"file": {"path": "in.txt"}}, "sink": place(broker, "f")}
    append(bare_site, [b"a"])
    path.write_text(json.dumps(document))
    told = bare_site.waybill("check", "--probe", str(path))
    assert "grants QoS 2, takes 20 publishes at a time and packets of 2,000 bytes, and keeps retained messages" in told
