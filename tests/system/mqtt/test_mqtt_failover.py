"""Several addresses of a broker: one that is gone, one that is silent, and brokers that share nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connect_core.errors import Unreachable
from connect_core.stack import ports
from connect_core.systems.mqtt.options import MqttSourceOptions
from connect_core.systems.mqtt.session import Session
from tests.mqtt_brokers import Mosquitto
from tests.mqtt_devices import devices, listening
from tests.mqtt_line import MqttLine
from tests.site import Site

pytestmark = pytest.mark.server


@pytest.fixture
def two(tmp_path: Path) -> Iterator[tuple[Mosquitto, Mosquitto]]:
    """Brokers that know nothing of each other."""
    brokers = (Mosquitto(tmp_path / "a"), Mosquitto(tmp_path / "b"))
    for one in brokers:
        one.start()
    yield brokers
    for one in brokers:
        one.kill()


def at(port: int, *failover: int, **more: Any) -> dict[str, Any]:
    others = [f"127.0.0.1:{one}" for one in failover]
    return {"host": "127.0.0.1", "port": port, "failover": others, "connect_timeout_s": 6, **more}


def source(site: Site, *ports: int) -> None:
    site.settings |= {"WAYBILL_QUANTUM_S": "4s", "WAYBILL_LINGER_S": "300ms"}
    site.apply("in", {"source": {"mqtt": at(*ports, filters=["d/#"])}, "sink": {"file": {"path": "out.txt"}}})


def run(site: Site, name: str, *words: str, code: int = 0) -> str:
    return site.waybill("run", name, "--engine", "inline", *words, code=code)


def publish(broker: Mosquitto, *payloads: bytes) -> None:
    with devices(broker) as all_of_them:
        all_of_them.publish("d/1", payloads)
        all_of_them.wait()


def lines(site: Site) -> list[bytes]:
    out = site.folder / "out.txt"
    return out.read_bytes().splitlines() if out.exists() else []


def test_a_session_goes_on_at_the_next_address(bare_site: Site, mosquitto: Mosquitto) -> None:
    """That of one broker: nothing is lost, nothing is repeated, and it is the same partition."""
    with MqttLine(mosquitto) as line:
        source(bare_site, line.port, mosquitto.port)
        run(bare_site, "in")
        publish(mosquitto, b"a")
        run(bare_site, "in")
    publish(mosquitto, b"b")
    run(bare_site, "in")
    run(bare_site, "in")
    assert lines(bare_site) == [b"a", b"b"]
    receipts = bare_site.json("receipts", "in", "--last", "100")["receipts"]
    assert {one["partition"] for one in receipts} == {"session-0"}
    assert sum(one["possible_duplicates"] for one in receipts) == 0
    assert bare_site.json("gaps", "in")["gaps"] == []


def test_an_address_that_is_silent_leaves_time_for_the_next_one(mosquitto: Mosquitto) -> None:
    with MqttLine(mosquitto) as line:
        line.holding.set()
        given = at(line.port, mosquitto.port, filters=["a"], uid="silent", connect_timeout_s=2)
        began = time.monotonic()
        session = Session(MqttSourceOptions.model_validate(given), "silent-first")
        assert 0.9 < time.monotonic() - began < 2
        assert session.there.address == ("127.0.0.1", mosquitto.port)
        session.give_up()


def test_when_none_answers_each_is_named() -> None:
    first, second = ports.free(), ports.free()
    given = at(first, second, filters=["a"], connect_timeout_s=0.3)
    with pytest.raises(Unreachable, match=rf"None of the addresses answers: .*:{first}.*; .*:{second}"):
        Session(MqttSourceOptions.model_validate(given), "nobody")


def test_a_sink_goes_on_at_the_next_address(bare_site: Site, mosquitto: Mosquitto) -> None:
    """Its progress is that of the broker, whichever address it was written through."""
    said = [b"%d" % n for n in range(120)]
    with MqttLine(mosquitto) as line, listening(mosquitto, "out/x") as listener:
        (bare_site.folder / "in.txt").write_bytes(b"".join(one + b"\n" for one in said[:60]))
        sink = at(line.port, mosquitto.port, topic="out/x", progress_every=16)
        bare_site.apply("out", {"source": {"file": {"path": "in.txt"}}, "sink": {"mqtt": sink}})
        run(bare_site, "out")
        line.__exit__()
        with (bare_site.folder / "in.txt").open("ab") as file:
            file.writelines(one + b"\n" for one in said[60:])
        run(bare_site, "out")
        assert listener.payloads(120) == said
    receipts = bare_site.json("receipts", "out")["receipts"]
    assert sum(one["possible_duplicates"] for one in receipts) == 0


def test_brokers_that_share_nothing_lose_the_session_each_time_and_it_is_noticed(
    bare_site: Site, two: tuple[Mosquitto, Mosquitto]
) -> None:
    """Also on the way back: the first one still has a session of this name, and what waited in it comes."""
    first, second = two
    source(bare_site, first.port, second.port)
    run(bare_site, "in")
    publish(first, b"a")
    run(bare_site, "in")
    publish(first, b"waits at the first")
    first.kill()
    assert "has lost the session" in run(bare_site, "in", code=5)
    run(bare_site, "in", "--accept-gaps")
    publish(second, b"b")
    run(bare_site, "in")
    assert lines(bare_site) == [b"a", b"b"]
    publish(second, b"waits at the second")
    first.start()
    assert "has lost the session" in run(bare_site, "in", code=5)
    run(bare_site, "in", "--accept-gaps")
    run(bare_site, "in")
    assert set(lines(bare_site)) == {b"a", b"b", b"waits at the first"}
    assert len(bare_site.json("gaps", "in")["gaps"]) == 2
