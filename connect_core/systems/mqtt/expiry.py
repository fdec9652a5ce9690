"""How much of a message's time is left, by its header `MQTT_EXPIRY_S` and when it came (MQTT 5, section 3.3.2.3.3: who
hands a message on takes off what it has waited). Pure.

The clock of this host is compared with that of the one which received the message, or of its producer. A message that
seems to come from the future has all of its time.
"""

from __future__ import annotations

HEADER = "MQTT_EXPIRY_S"


def left_s(interval_s: int, came_ms: int | None, now_ms: int) -> int:
    """Seconds, at least 1 for a message that is sent at all; of one that has no time all of the interval."""
    return interval_s if came_ms is None else max(interval_s - _waited_ms(came_ms, now_ms) // 1000, 1)


def is_over(interval_s: int, came_ms: int | None, now_ms: int) -> bool:
    return came_ms is not None and _waited_ms(came_ms, now_ms) >= interval_s * 1000


def _waited_ms(came_ms: int, now_ms: int) -> int:
    return max(now_ms - came_ms, 0)
