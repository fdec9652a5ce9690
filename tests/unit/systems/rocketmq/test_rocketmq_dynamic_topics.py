"""Topics that templates of rules name: what a range says of them, and what a driver knows of them."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_core.errors import Unreachable
from connect_core.rocketmq import Client, PermissionRefused, Queue, TopicMissing
from connect_core.sdk.batches import RECORD_SCHEMA
from connect_core.sdk.sink import Growing, Outside
from connect_core.sdk.values import Floor, Json
from connect_core.systems.rocketmq import dynamic_topics
from connect_core.systems.rocketmq.compatibility import _may_meet
from connect_core.systems.rocketmq.dynamic_topics import DynamicTopics, outside
from connect_core.systems.rocketmq.options import RocketMQSinkOptions
from connect_core.systems.rocketmq.routing import by_topic, pins_of, with_refused, with_rules
from connect_core.systems.rocketmq.sink import RocketMQSink

QUEUES = [Queue("x", "broker-a", 0)]


def options(**given: Any) -> RocketMQSinkOptions:
    return RocketMQSinkOptions(
        **{"name_servers": ["127.0.0.1:1"], "topic": "own", "rule_patterns": ["t-*"], "rule_topics": [], **given}
    )


def target(*topics: str, first: str = "own", refused: dict[str, str] | None = None) -> Json:
    to = {topic: pins_of(topic, QUEUES, "partition") for topic in topics}
    return with_refused(with_rules(pins_of(first, QUEUES if first else (), "partition"), to), refused or {})


def rows(*to: str | None) -> pa.RecordBatch:
    given = [{"offset": n, "value": b"x", "operation": 0, "to": name} for n, name in enumerate(to)]
    return pa.RecordBatch.from_pylist(given, schema=RECORD_SCHEMA)


def told(found: Outside) -> tuple[list[tuple[int, str]], list[int], list[str]]:
    return [(row, kind) for row, kind, _ in found.refused], list(found.rows), list(found.names)


def test_what_a_range_has_pinned_is_not_outside() -> None:
    assert outside(rows(None, None), target(), options()) == Outside()
    assert outside(rows(None, "t-a", "own"), target("t-a"), options()) == Outside()


def test_outputs_of_other_topics_are_told_with_their_names() -> None:
    found = outside(rows(None, "t-b", "t-a", "t-b", "t-c"), target("t-a"), options())
    assert told(found) == ([], [1, 3, 4], ["t-b", "t-b", "t-c"])


@pytest.mark.parametrize(
    "name", ["", "a b", "ü", "a/b", "x" * 128, "TBW102", "rmq_sys_a", "%RETRY%g", "WAYBILL_BARRIER"]
)
def test_names_that_rocketmq_refuses_are_refused_and_not_repeated(name: str) -> None:
    found = outside(rows("t-a", name), target("t-a"), options())
    assert told(found) == ([(1, "IllegalTopic")], [], [])
    assert name not in found.refused[0][2] or not name


def test_a_topic_that_was_looked_for_in_vain_is_refused_by_the_pins() -> None:
    found = outside(rows("t-a", "t-b"), target("t-a", refused={"t-b": "does not exist"}), options())
    assert found.refused == [(1, "TopicRefused", "It would go to t-b, which does not exist")]


def test_of_more_topics_than_the_options_allow_none_is_wanted() -> None:
    found = outside(rows("fixed", "t-a", "t-b"), target("fixed", "t-a"), options(max_topics=1, rule_topics=["fixed"]))
    assert told(found) == ([(2, "TooManyTopics")], [], [])
    assert told(outside(rows("t-b"), target("fixed"), options(max_topics=1, rule_topics=["fixed"])))[1] == [0]


def test_where_templates_name_all_topics_there_is_no_first_one() -> None:
    assert list(by_topic(target("t-a", first=""))) == ["t-a"]
    assert told(outside(rows("t-a", ""), target("t-a", first=""), options())) == ([(1, "IllegalTopic")], [], [])
    assert by_topic(target("t-a", refused={"t-b": "gone"}))["t-a"].keys() == {"topic", "queues"}


def test_a_sink_grows_where_templates_name_topics() -> None:
    assert isinstance(RocketMQSink(options()), Growing)
    assert RocketMQSink(options()).grows
    assert not RocketMQSink(options(rule_patterns=[])).grows


class Cluster:
    """Stands in for a client: which topics there are, and which brokers."""

    def __init__(self, *there: str, brokers: Sequence[str] = ("broker-a",)) -> None:
        self.there = set(there)
        self.topics = SimpleNamespace(exists=lambda topic: topic in self.there, config_on=lambda topic, broker: None)
        own = SimpleNamespace(brokers=brokers, clusters=["DefaultCluster"])
        self.brokers = SimpleNamespace(masters=lambda: dict.fromkeys(brokers, "address"), cluster=lambda: own)
        self.looked: list[str] = []

    def target(self, topic: str) -> Json:
        self.looked.append(topic)
        if topic == "t-closed":
            raise PermissionRefused("no")
        if topic not in self.there:
            raise TopicMissing("none")
        return pins_of(topic, QUEUES, "partition")

    def look(self, known: DynamicTopics, *floors: str, others: Sequence[str] = ()) -> tuple[set[str], set[str]]:
        there = [Floor("p", f"{topic}/broker-a/0", 5) for topic in floors]
        targets, refused = known.look(cast("Client", self), there, others, self.target)
        return set(targets), set(refused)


def test_topics_in_which_something_stands_are_targets_from_the_begin() -> None:
    cluster = Cluster("t-a", "t-b", "other")
    known = DynamicTopics(options())
    assert cluster.look(known, "t-a", "other", "t-gone") == ({"t-a"}, set()), "one that was deleted is none"
    assert cluster.look(known, "t-a", "t-b", others=["t-b"]) == ({"t-a"}, set())
    assert cluster.looked == ["t-a"], "once a run"


def test_a_topic_that_only_a_broker_has_which_is_away_is_not_taken_for_deleted() -> None:
    with pytest.raises(Unreachable):
        Cluster(brokers=["broker-b"]).look(DynamicTopics(options()), "t-a")
    known = DynamicTopics(options())
    known.want(["t-b"])
    with pytest.raises(Unreachable):
        Cluster("t-a", brokers=["broker-b"]).look(known, "t-a")


def test_what_is_wanted_is_a_target_then_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, now = Cluster("t-a"), [100.0]
    monkeypatch.setattr(dynamic_topics.clock, "monotonic", lambda: now[0])
    known = DynamicTopics(options())
    assert not known.outgrown()
    known.want(["t-a", "t-b", "t-closed"])
    assert known.outgrown()
    assert cluster.look(known) == ({"t-a"}, {"t-b", "t-closed"})
    assert not known.outgrown()
    cluster.there.add("t-b")
    now[0] += dynamic_topics.LOOK_AGAIN_S
    assert known.outgrown(), "it may be there by now"
    assert cluster.look(known) == ({"t-a"}, set())
    known.want(["t-b"])
    assert cluster.look(known) == ({"t-a", "t-b"}, set())


def test_topics_of_rocketmq_itself_are_refused() -> None:
    names = ["broker-a", "DefaultCluster", "%DLQ%g"]
    cluster, known = Cluster(*names), DynamicTopics(options())
    known.want([*names, "t-a"])
    cluster.there.add("t-a")
    assert cluster.look(known) == ({"t-a"}, {*names})
    assert cluster.looked == ["t-a"]


def test_no_more_are_taken_than_the_options_allow() -> None:
    cluster, known = Cluster(*(f"t-{n}" for n in range(9))), DynamicTopics(options(max_topics=3))
    known.want([f"t-{n}" for n in range(5)])
    assert cluster.look(known, "t-7") == ({"t-7", "t-0", "t-1"}, set())


@pytest.mark.parametrize(
    ("one", "other", "meet"),
    [
        ("a-*", "a-b", True),
        ("a-*", "b-*", False),
        ("*-x", "a-*", True),
        ("a?c", "a*", True),
        ("a?c", "ac", False),
        ("*", "*", True),
        ("", "*", True),
        ("a*b*c", "*d", False),
    ],
)
def test_patterns_that_may_name_the_same_topic(one: str, other: str, meet: bool) -> None:
    assert _may_meet(one, other) is _may_meet(other, one) is meet


_PATTERNS = st.text("ab*?", max_size=6)


@given(_PATTERNS, _PATTERNS, st.text("ab", max_size=5))
def test_a_name_that_matches_two_patterns_shows_that_they_meet(one: str, other: str, name: str) -> None:
    from fnmatch import fnmatchcase

    if fnmatchcase(name, one) and fnmatchcase(name, other):
        assert _may_meet(one, other)
