"""Which connectors a message has passed: a mark in its user properties, by which a circle of connectors ends. Pure.

`WAYBILL_HOPS` holds the uids of those that mark, oldest first, with commas between. It travels as a user property
(MQTT 5), and through other systems as the header `MQTT_USER_WAYBILL_HOPS`. Every circle that leads through a broker has
an MQTT source that reads from it, so a source alone needs to mark, and to look.
"""

from __future__ import annotations

from collections.abc import Sequence

from connect_core.systems.mqtt.packets import Packet
from connect_core.systems.mqtt.reception import Arrival

NAME = "WAYBILL_HOPS"


def sorted_out(arrivals: Sequence[Arrival], uid: str, most: int) -> tuple[list[Arrival], tuple[int, ...]]:
    """Those that go on, marked as having passed this connector; and the numbers of those that have passed it before, or
    `most` connectors."""
    kept, left_out = [], []
    for one in arrivals:
        before = hops_of(one.packet)
        if uid in before or len(before) >= most:
            left_out.append(one.number)
        else:
            kept.append(one._replace(packet=_marked(one.packet, [*before, uid])))
    return kept, tuple(left_out)


def hops_of(packet: Packet) -> list[str]:
    return [uid for name, text in packet.properties.user if name == NAME for uid in text.split(",") if uid]


def _marked(packet: Packet, hops: Sequence[str]) -> Packet:
    others = [pair for pair in packet.properties.user if pair[0] != NAME]
    user = (*others, (NAME, ",".join(hops)))
    return packet._replace(properties=packet.properties._replace(user=user))
