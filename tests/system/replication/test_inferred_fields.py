"""Fields that are inferred from the messages of a topic, and the range that is finished with those of its revision."""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence

import pytest

from connect_core.rocketmq import Client, ClientOptions, encode_batch
from connect_core.rocketmq.wire import properties
from tests.site import Site

pytestmark = pytest.mark.server


def send(site: Site, topic: str, *messages: tuple[str, bytes]) -> None:
    """Tags and body of each."""
    with Client(ClientOptions(name_servers=tuple(site.name_servers))) as client:
        client.topics.create(topic, 1)
        [queue] = client.topics.write_queues(topic)
        sender, deadline = client.sender(queue), time.monotonic() + 60
        for tags, body in messages:
            sender.submit(encode_batch([body], [properties.encode({"TAGS": tags})]), deadline=deadline)
        sender.finish(deadline=deadline)
        for broker in client.brokers.masters():
            client.barrier(broker, deadline=deadline)


def inferring(site: Site, origin: str, **more: object) -> dict[str, object]:
    return {
        "source": {"rocketmq": {"name_servers": site.name_servers, "topics": [origin]}},
        "sink": {"rocketmq": {"name_servers": [*site.name_servers], "topic": site.topic, "queues": 1}},
        "parse": {"format": "json", "fields": "infer"},
        "encode": {"format": "json"},
        **more,
    }


def fields(site: Site) -> Sequence[str]:
    return list(site.json("plan", "a")["schema"]["fields"])


def test_the_messages_that_the_filter_lets_pass_say_the_fields(inline_site: Site) -> None:
    site, origin = inline_site, f"{inline_site.topic}-in"
    send(site, origin, ("order", b'{"id":9007199254740993}'), ("log", b'{"text":"x"}'), ("order", b'{"who":"ann"}'))
    site.apply("a", inferring(site, origin, filter={"tags": ["order"]}))
    assert fields(site) == ["id", "who"]
    site.waybill("run", "a", "--engine", "inline")
    assert site.messages() == [b'{"id":9007199254740993,"who":null}', b'{"id":null,"who":"ann"}']


def test_a_topic_without_messages_is_no_sample(inline_site: Site) -> None:
    site, origin = inline_site, f"{inline_site.topic}-in"
    send(site, origin)
    with pytest.raises(AssertionError, match="The source has no record"):
        site.apply("a", inferring(site, origin))
    assert site.json("connectors", "list")["connectors"] == []


def test_an_open_range_is_finished_with_the_fields_that_it_was_begun_with(inline_site: Site) -> None:
    site, origin = inline_site, f"{inline_site.topic}-in"
    send(site, origin, ("", b'{"id":1}'))
    site.apply("a", inferring(site, origin))
    site.fault("planned")
    site.waybill("run", "a", "--engine", "inline", code=-signal.SIGKILL)
    send(site, origin, ("", b'{"id":2,"late":true}'))
    site.waybill("apply", "a.yaml")
    assert fields(site) == ["id"], "applied again, it keeps them"
    site.waybill("apply", "a.yaml", "--infer-again", "--yes")
    assert sorted(fields(site)) == ["id", "late"]
    site.waybill("run", "a", "--engine", "inline")
    assert site.messages() == [b'{"id":1}', b'{"id":2,"late":true}']
