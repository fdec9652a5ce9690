"""What a connector promises follows from all of its document: both systems, their options, and its policies."""

from __future__ import annotations

from pathlib import Path

import pytest

from connect_core.config import load_document
from connect_core.sdk.values import Json
from connect_core.service.guarantees import promised

GUARANTEES = Path(__file__).parents[3] / "docs" / "guarantees.md"
FILE = {"file": {"path": "/logs/*.log"}}
QUEUES = {"rocketmq": {"name_servers": "h:1", "topics": "a"}}
TOPIC: Json = {"name_servers": "h:1", "topic": "b"}
MQTT: Json = {"host": "h", "filters": ["a/#"]}


def _promised(source: Json, sink: Json, **more: Json) -> Json:
    told = promised(load_document({"version": 1, "name": "a", "source": source, "sink": sink, **more}))
    assert told is not None
    return told


def _added(told: Json, plain: Json) -> list[str]:
    return [one for one in told["conditions"] if one not in plain["conditions"]]


@pytest.mark.parametrize(
    ("errors", "policies"),
    [
        ({"on_data_loss": "skip"}, ["`errors.on_data_loss: skip`"]),
        ({"tolerance": "all"}, ["`errors.tolerance`"]),
        ({"tolerance": 5}, ["`errors.tolerance`"]),
        ({"tolerance": "none", "on_data_loss": "fail"}, []),
    ],
)
def test_a_policy_that_lets_a_run_continue_is_a_condition(errors: Json, policies: list[str]) -> None:
    plain = _promised(FILE, {"rocketmq": TOPIC})
    told = _promised(FILE, {"rocketmq": TOPIC}, errors=errors)
    added = _added(told, plain)
    assert told["delivery"] == "exactly once"
    assert [policy in condition for policy, condition in zip(policies, added, strict=True)] == [True] * len(policies)
    page = " ".join(GUARANTEES.read_text().split())
    assert [one for one in added if f"*{one.removesuffix('.')}" not in page] == []


def test_all_policies_of_a_sink_are_conditions() -> None:
    policies = {"on_unknown": "redeliver", "on_replaced": "continue"}
    plain = _promised(QUEUES, {"rocketmq": TOPIC})
    told = _promised(QUEUES, {"rocketmq": {**TOPIC, **policies}})
    assert len(_added(told, plain)) == 2
    for name, value in policies.items():
        assert any(f"`{name}: {value}`" in one for one in told["conditions"])


def test_what_may_be_delivered_again_is_at_most_once_only_under_a_condition() -> None:
    told = _promised({"mqtt": {**MQTT, "qos": 0}}, {"rocketmq": {**TOPIC, "on_unknown": "redeliver"}})
    assert told["delivery"] == "at most once"
    assert any("delivers its range again" in one for one in told["conditions"])


@pytest.mark.parametrize("source", [FILE, {"mqtt": MQTT}])
def test_where_nothing_is_promised_there_is_no_condition(source: Json) -> None:
    told = _promised(source, {"mqtt": {"host": "h", "topic": "z", "qos": 0}}, errors={"tolerance": "all"})
    assert (told["delivery"], told["conditions"]) == ("may be lost or repeated", [])


@pytest.mark.parametrize(
    ("source", "sink", "order"),
    [
        (FILE, {"rocketmq": TOPIC}, "each file"),
        (FILE, {"rocketmq": {**TOPIC, "order": "key"}}, "each key of each file"),
        ({"file": {"path": "/a", "parallel": True}}, {"rocketmq": TOPIC}, None),
        ({"file": {"path": "/a", "parallel": True}}, {"rocketmq": {**TOPIC, "order": "key"}}, None),
        (QUEUES, {"file": {"path": "/b"}}, "each queue"),
        (QUEUES, {"rocketmq": {**TOPIC, "order": "queue"}}, "each queue"),
        (QUEUES, {"rocketmq": {**TOPIC, "order": "sharding_key"}}, "each sharding key of each queue"),
        ({"mqtt": MQTT}, {"mqtt": {"host": "h", "topic": "z"}}, "each session"),
    ],
)
def test_order_is_that_of_the_source_as_far_as_the_sink_keeps_it(source: Json, sink: Json, order: str | None) -> None:
    assert _promised(source, sink)["order"] == order
