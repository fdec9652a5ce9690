"""Hostile packets, read: each becomes what the page says, and none takes more time than its size accounts for."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from contextlib import suppress
from itertools import count

import pytest

from connect_core.systems.mqtt.packets import Packet, read_publish
from connect_core.systems.mqtt.records import record_batch
from connect_core.systems.mqtt.session_state import Arrival
from tests.mqtt_hostile import Fate, Hostility, Said, length_of, text

HOSTILE = 10_000


def parted(frame: bytes) -> tuple[int, bytes]:
    """The first byte, and what follows the length. Raises ValueError where nobody reads on (MQTT 5, section 1.5.5)."""
    end = next(at for at in count(1) if frame[at] < 0x80) + 1
    if end > 5:
        raise ValueError("A length has at most four bytes")
    return frame[0], frame[end:]


def fates(script: Sequence[Said], *, five: bool) -> list[Fate]:
    """What becomes of each of them, all of one batch."""
    found = [Fate.BREAK] * len(script)
    arrivals = []
    for number, said in enumerate(script):
        with suppress(ValueError):
            packet = read_publish(*parted(said.frame), five=five)
            assert (packet.qos, packet.packet_id, packet.payload) == said.expected[1:4], said.what
            found[number] = Fate.RECORD
            arrivals.append(Arrival(number, packet, 0, False))
    records, rejects = record_batch(arrivals)
    assert len(records) + len(rejects) == len(arrivals)
    for one in rejects:
        found[one.offset] = Fate.LETTER
    return found


@pytest.mark.parametrize("five", [True, False], ids=["5", "3.1.1"])
def test_each_becomes_what_the_page_says(five: bool) -> None:
    script = Hostility(random.Random(f"hostile {five}"), five=five, breaks=HOSTILE).script(HOSTILE, 100)
    found = fates(script, five=five)
    pairs = zip(script, found, strict=True)
    wrong = [(one.what, one.expected.fate, fate) for one, fate in pairs if one.expected.fate is not fate]
    assert wrong == []
    assert {*found} == {*Fate}


def seconds_for(body: bytes) -> float:
    """The least of several times."""
    took = []
    for _ in range(5):
        began = time.process_time()
        try:
            packet = read_publish(0x32, body, five=True)
        except ValueError:
            packet = Packet(b"t", b"", 1)
        record_batch([Arrival(1, packet, 0, False)])
        took.append(time.process_time() - began)
    return min(took)


PROPERTIES = {
    "user properties of many names": lambda n: b"".join(b"\x26" + text(b"%d" % i) + text(b"x") for i in range(n)),
    "one user property often": lambda n: (b"\x26" + text(b"name") + text(b"x")) * n,
    "one other property often": lambda n: (b"\x03" + text(b"type")) * n,
    "subscription identifiers": lambda n: b"\x0b\x07" * n,
    "separators": lambda n: (b"\x26" + text(b"a\x01") + text(b"\x02")) * n,
}


@pytest.mark.parametrize("what", PROPERTIES)
def test_eight_times_as_much_takes_about_eight_times_as_long(what: str) -> None:
    def body(times: int) -> bytes:
        properties = PROPERTIES[what](times)
        return text(b"t") + b"\0\x07" + length_of(len(properties)) + properties + b"x"

    assert seconds_for(body(16_000)) < 24 * seconds_for(body(2_000)) + 0.02
