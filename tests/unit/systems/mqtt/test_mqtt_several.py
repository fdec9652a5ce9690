"""Several sessions of one task: what is told of those that fail, and what stops all of them."""

from __future__ import annotations

from typing import Any

import pytest

from connect_core.errors import ConfigError, Failure, Refused, Unreachable, WaybillError
from connect_core.sdk.records import Partition
from connect_core.sdk.values import Pins, Range
from connect_core.systems.mqtt.connection import Unreadable
from connect_core.systems.mqtt.source import _ended, _of_some

FIRST, SECOND = Partition("session-0"), Partition("session-1")


class SessionReader:
    def __init__(self, error: WaybillError | None = None) -> None:
        self._error = error

    def lost(self) -> WaybillError | None:
        return self._error


def followed(*errors: WaybillError | None) -> Any:
    pins = Pins(1, "p", {}, "code")
    return [
        (Range("live", Partition(f"session-{n}"), n, 0, 0, 1 << 62, 10, 10, {}, pins), SessionReader(error))
        for n, error in enumerate(errors)
    ]


def told(*errors: WaybillError | None, something: bool = False) -> dict[str, str]:
    found = {}
    for wanted, came in _ended(followed(*errors), something=something):
        assert isinstance(came, Failure)
        found[wanted.partition.key] = came.family
    return found


def test_those_that_cannot_be_connected_to_are_told_where_there_are_others() -> None:
    refused = _of_some({FIRST: Refused("not let in"), SECOND: Unreachable("cut")}, others=True)
    assert {one.key: failure.family for one, failure in refused.items()} == {
        "session-0": "Refused",
        "session-1": "PartitionUnreachable",
    }
    assert _of_some({}, others=False) == {}


@pytest.mark.parametrize(
    ("error", "others"),
    [(Unreachable("away"), False), (ConfigError("no such expiry"), True), (ValueError("a defect"), True)],
)
def test_what_stops_all_of_them_is_raised(error: Exception, others: bool) -> None:
    with pytest.raises(type(error)):
        _of_some({FIRST: error}, others=others)


def test_a_connection_that_ends_concerns_its_own_session() -> None:
    assert told(None, None) == {}
    assert told(Refused("taken over"), None) == {"session-0": "Refused"}
    assert told(None, Unreachable("cut"), something=True) == {"session-1": "PartitionUnreachable"}


def test_where_all_have_ended_it_is_the_broker() -> None:
    with pytest.raises(Unreachable):
        told(Unreachable("cut"), Unreachable("cut"))
    assert told(Unreachable("cut"), Unreachable("cut"), something=True) == {}, "what came is settled first"
    with pytest.raises(Refused):
        told(Unreachable("cut"), Refused("taken over"), something=True)


def test_what_cannot_be_read_is_told_with_what_came_before_it() -> None:
    """The broker sends both again over the next connection, and so on for ever."""
    assert told(Unreadable("no packet"), something=True) == {"session-0": "PartitionUnreachable"}
    with pytest.raises(Unreadable):
        told(Unreadable("no packet"))
