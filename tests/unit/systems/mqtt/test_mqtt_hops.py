"""The mark of the connectors that a message has passed, and who leaves what out by it."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from connect_core.sdk.records import decode_headers
from connect_core.sdk.templates import template
from connect_core.sdk.testing.driving import records
from connect_core.systems.mqtt.compatibility import feeds
from connect_core.systems.mqtt.options import MqttSourceOptions
from connect_core.systems.mqtt.packets import Packet, Properties
from connect_core.systems.mqtt.publications import Composer, Publication
from connect_core.systems.mqtt.records import HOPS, hops_of, record_batch, sorted_out
from connect_core.systems.mqtt.session_state import Arrival

OTHERS = (("unit", "C"), ("unit", "F"))


def arrival(*hops: str, number: int = 7, user: tuple[tuple[str, str], ...] = ()) -> Arrival:
    mark = ((HOPS, ",".join(hops)),) if hops else ()
    return Arrival(number, Packet(b"t", b"x", 1, 1, properties=Properties(user=(*user, *mark))), 5, False)


@pytest.mark.parametrize(
    ("hops", "most", "passes"),
    [
        ((), 1, True),
        (("b",), 1, False),
        (("b",), 2, True),
        (("a",), 32, False),
        (("b", "a", "c"), 32, False),
        (("b", "c"), 3, True),
        (("b", "c", "d"), 3, False),
        (("ab",), 2, True),
    ],
)
def test_who_has_passed_this_one_or_too_many_is_left_out(hops: tuple[str, ...], most: int, passes: bool) -> None:
    kept, left_out = sorted_out([arrival(*hops)], "a", most)
    assert ([hops_of(one.packet) for one in kept], left_out) == (([[*hops, "a"]], ()) if passes else ([], (7,)))


def test_the_mark_is_one_user_property_behind_the_others() -> None:
    [one], _ = sorted_out([arrival("b", user=(*OTHERS, (HOPS, "c")))], "a", 9)
    assert one.packet.properties.user == (*OTHERS, (HOPS, "c,b,a"))
    assert one._replace(packet=one.packet._replace(properties=Properties())) == Arrival(
        7, Packet(b"t", b"x", 1, 1), 5, False
    )


@pytest.mark.parametrize("user", [(), (("color", "red"),), OTHERS])
def test_it_goes_through_other_systems_and_comes_out_as_it_was(user: tuple[tuple[str, str], ...]) -> None:
    [one], _ = sorted_out([arrival("b", user=user)], "a", 9)
    batch, _ = record_batch([one])
    headers = batch.column("headers")[0].as_py()
    assert decode_headers(headers)["MQTT_USER_WAYBILL_HOPS"] == "b,a"
    composer = Composer(template("{header:MQTT_TOPIC}"), "waybill/")
    [published] = composer.compose(records([b"x"], headers=[headers]))
    assert isinstance(published, Publication)
    assert published.properties.user == (*user, (HOPS, "b,a"))


def test_a_circle_is_seen_before_it_runs_unless_its_mark_ends_it() -> None:
    sink, source = {"host": "h", "topic": "a/b"}, {"host": "h", "filters": ["a/#"]}
    assert feeds(sink, source)
    assert not feeds(sink, {**source, "max_hops": 1})
    assert feeds({**sink, "protocol": "3.1.1"}, {**source, "max_hops": 1}), "it publishes without the mark"


def test_3_1_1_has_no_mark() -> None:
    with pytest.raises(ValidationError, match="no user properties"):
        MqttSourceOptions.model_validate({"host": "a", "filters": ["a"], "protocol": "3.1.1", "max_hops": 1})
