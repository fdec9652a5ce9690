"""What a session is subscribed to when its document changes, with a real broker."""

from __future__ import annotations

from typing import Any

import pytest

from tests.mqtt_brokers import Mosquitto
from tests.mqtt_devices import devices
from tests.site import Site

pytestmark = pytest.mark.server

both = pytest.mark.parametrize("protocol", ["5", "3.1.1"])
costly_both = pytest.mark.parametrize("protocol", ["5", pytest.param("3.1.1", marks=pytest.mark.fault(costly=True))])


def moved(site: Site, broker: Mosquitto, **source: Any) -> list[bytes]:
    """What is in the target after a run of this document."""
    given = {"host": broker.host, "port": broker.port, **source}
    site.apply("in", {"source": {"mqtt": given}, "sink": {"file": {"path": "out.txt"}}})
    site.waybill("run", "in", "--engine", "inline")
    out = site.folder / "out.txt"
    return out.read_bytes().splitlines() if out.exists() else []


def publish(broker: Mosquitto, topic: str, *payloads: bytes, retain: bool = False) -> None:
    with devices(broker) as all_of_them:
        all_of_them.publish(topic, payloads, retain=retain)
        all_of_them.wait()


@both
def test_a_qos_that_is_raised_holds_from_the_next_run_on(bare_site: Site, mosquitto: Mosquitto, protocol: str) -> None:
    """Of QoS 0 a broker keeps nothing while no run is connected."""
    moved(bare_site, mosquitto, filters=["d/raised"], protocol=protocol, qos=0)
    moved(bare_site, mosquitto, filters=["d/raised"], protocol=protocol, qos=1)
    publish(mosquitto, "d/raised", b"one", b"two")
    assert moved(bare_site, mosquitto, filters=["d/raised"], protocol=protocol, qos=1) == [b"one", b"two"]


@both
def test_one_more_filter_brings_no_retained_message_again(bare_site: Site, mosquitto: Mosquitto, protocol: str) -> None:
    publish(mosquitto, f"d/kept/{protocol}", b"kept", retain=True)
    filters = [f"d/kept/{protocol}", f"d/more/{protocol}"]
    assert moved(bare_site, mosquitto, filters=filters[:1], protocol=protocol) == [b"kept"]
    assert moved(bare_site, mosquitto, filters=filters, protocol=protocol) == [b"kept"]
    publish(mosquitto, filters[1], b"more")
    assert moved(bare_site, mosquitto, filters=filters, protocol=protocol) == [b"kept", b"more"]
    assert moved(bare_site, mosquitto, filters=filters, protocol=protocol) == [b"kept", b"more"]


@costly_both
def test_a_filter_in_the_place_of_another_one(bare_site: Site, mosquitto: Mosquitto, protocol: str) -> None:
    """What both have comes once, what only the old one had no more."""
    old, wider, other = [f"d/{protocol}/+"], [f"d/{protocol}/#"], [f"e/{protocol}/+"]
    moved(bare_site, mosquitto, filters=old, protocol=protocol)
    publish(mosquitto, f"d/{protocol}/one", b"before")
    moved(bare_site, mosquitto, filters=wider, protocol=protocol)
    publish(mosquitto, f"d/{protocol}/one", b"one")
    publish(mosquitto, f"d/{protocol}/one/two", b"two")
    moved(bare_site, mosquitto, filters=other, protocol=protocol)
    publish(mosquitto, f"d/{protocol}/one", b"nobody wants it")
    publish(mosquitto, f"e/{protocol}/one", b"three")
    assert moved(bare_site, mosquitto, filters=other, protocol=protocol) == [b"before", b"one", b"two", b"three"]


@costly_both
def test_filters_that_move_to_other_sessions(bare_site: Site, mosquitto: Mosquitto, protocol: str) -> None:
    """What is not published at that moment comes once, whichever session has it; that they move is told once."""
    filters = [f"m/{protocol}/{name}" for name in "abcd"]
    shares = [(2, filters), (3, filters), (2, filters[1:]), (2, filters[:0:-1]), (1, filters)]
    sent: list[bytes] = []
    for number, (sessions, named) in enumerate(shares):
        there = moved(bare_site, mosquitto, filters=named, protocol=protocol, sessions=sessions)
        assert sorted(there) == sorted(sent)
        sent += (said := [b"%d %s" % (number, one.encode()) for one in named])
        for topic, payload in zip(named, said, strict=True):
            publish(mosquitto, topic, payload)
    assert sorted(moved(bare_site, mosquitto, filters=filters, protocol=protocol)) == sorted(sent)
    told = [one for one in bare_site.json("gaps", "in")["gaps"] if "another session" in one["reason"]]
    assert 0 < len(told) <= 2 * len(shares), "each session says it once for a document"
