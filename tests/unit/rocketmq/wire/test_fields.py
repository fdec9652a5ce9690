from __future__ import annotations

import pytest

from connect_core.errors import WireFormatError
from connect_core.rocketmq.wire.commands import (
    ConsumerGroupRequest,
    CreateTopicRequest,
    OffsetResponse,
    PullRequest,
    PullResponse,
    RouteRequest,
    SendRequest,
)
from connect_core.rocketmq.wire.fields import from_fields, to_fields


def test_names_and_text_of_the_wire() -> None:
    assert to_fields(PullRequest("g", "t", 3, 17, 32)) == {
        "consumerGroup": "g",
        "topic": "t",
        "queueId": "3",
        "queueOffset": "17",
        "maxMsgNums": "32",
        "sysFlag": "4",
        "commitOffset": "0",
        "suspendTimeoutMillis": "0",
        "subscription": "*",
        "subVersion": "0",
    }
    assert to_fields(RouteRequest("t")) == {"topic": "t", "acceptStandardJsonOnly": "true"}


def test_a_batch_send_is_marked_as_batch_and_carries_no_properties() -> None:
    fields = to_fields(SendRequest("g", "t", 0, 99))
    assert fields["m"] == "true"
    assert fields["i"] == ""
    assert fields["c"] not in ("", "TBW102", "t")


def test_none_is_left_out() -> None:
    assert to_fields(ConsumerGroupRequest("g")) == {"consumerGroup": "g"}
    assert "attributes" not in to_fields(CreateTopicRequest("t", 1, 1, 6))


@pytest.mark.parametrize(
    "value",
    [
        PullRequest("g", "t", 3, 17, 32, system_flag=6, suspend_ms=15_000),
        PullResponse(1, 2, 3),
        PullResponse(1, 2, 3, suggested_broker_id=1),
        CreateTopicRequest("t", 4, 4, 6, attributes="+queue.type=BatchCQ"),
        ConsumerGroupRequest("g", "t"),
    ],
)
def test_round_trip(value: object) -> None:
    assert from_fields(type(value), to_fields(value)) == value


def test_unknown_fields_are_ignored() -> None:
    assert from_fields(OffsetResponse, {"offset": "5", "TRACE_ON": "true"}) == OffsetResponse(5)


@pytest.mark.parametrize(("fields", "message"), [({}, "without its field offset"), ({"offset": "x"}, "not a number")])
def test_missing_and_wrong_fields(fields: dict[str, str], message: str) -> None:
    with pytest.raises(WireFormatError, match=message):
        from_fields(OffsetResponse, fields)
