"""Transforms between two topics of a real broker: what came compressed leaves as it was changed."""

from __future__ import annotations

import json
import time
import zlib

import pytest

from connect_core.rocketmq import Client, ClientOptions, encode_batch
from connect_core.rocketmq.wire import properties
from tests.site import Site

pytestmark = pytest.mark.server

_PACKED = 0x001


def test_a_masked_field_of_a_compressed_message_does_not_arrive(inline_site: Site) -> None:
    site = inline_site
    origin, texts = f"{site.topic}-in", properties.encode({"KEYS": "k1", "TAGS": "paid", "region": "eu"})
    body = json.dumps({"id": 7, "card": "4000123412341234", "note": "x" * 2_000}).encode()
    with Client(ClientOptions(name_servers=tuple(site.name_servers))) as client:
        client.topics.create(origin, 1)
        [queue] = client.topics.write_queues(origin)
        sender, deadline = client.sender(queue), time.monotonic() + 60
        sender.submit(encode_batch([zlib.compress(body)], [texts]), deadline=deadline, sys_flag=_PACKED)
        sender.submit(encode_batch([body], [texts]), deadline=deadline)
        sender.finish(deadline=deadline)
        site.apply(
            "masked",
            {
                "source": {"rocketmq": {"name_servers": site.name_servers, "topics": [origin]}},
                "sink": {"rocketmq": {"name_servers": [*site.name_servers], "topic": site.topic, "queues": 1}},
                "parse": {"format": "json", "fields": {"card": "text", "id": "int64", "note": "text"}},
                "transforms": [{"mask": {"card": "redact"}}, {"drop": ["note"]}],
            },
        )
        site.waybill("run", "masked", "--engine", "inline")
        [target] = client.topics.read_queues(site.topic)
        found = [m for part in client.read(target, 0, 9, deadline=deadline) for m in part.messages]
    assert [(one.body, one.sys_flag & _PACKED) for one in found] == [(b'{"card":"***","id":7}', 0)] * 2
    named = [properties.decode(one.properties) for one in found]
    assert [(one["KEYS"], one["TAGS"], one["region"]) for one in named] == [("k1", "paid", "eu")] * 2
