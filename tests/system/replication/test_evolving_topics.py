"""`unknown: evolve` between topics: messages that need fields, while nobody and while somebody waits for them."""

from __future__ import annotations

import json
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.site import Site
from tests.system.replication.test_inferred_fields import fields, send

pytestmark = pytest.mark.server


def evolving(site: Site, origin: str) -> dict[str, object]:
    return {
        "source": {"rocketmq": {"name_servers": site.name_servers, "topics": [origin]}},
        "sink": {"rocketmq": {"name_servers": [*site.name_servers], "topic": site.topic, "queues": 1}},
        "engine": "inline",
        "parse": {"format": "json", "fields": {"id": "int32"}, "unknown": "evolve"},
        "encode": {"format": "json"},
    }


@pytest.mark.parametrize("step", ["before-receipt", "settled", "before-evolved", "evolved"])
def test_messages_arrive_once_whoever_dies(inline_site: Site, step: str) -> None:
    site, origin = inline_site, f"{inline_site.topic}-in"
    bodies = [b'{"id":1}', b'{"id":2,"who":"ann"}', b'{"id":3}', b'{"id":4294967296}']
    send(site, origin, *(("", body) for body in bodies))
    site.apply("a", evolving(site, origin))
    site.fault(step)
    site.waybill("run", "a", code=1 if step == "before-receipt" else -signal.SIGKILL)
    site.waybill("run", "a")
    assert site.messages() == [
        b'{"id":1}',
        b'{"id":2,"who":"ann"}',
        b'{"id":3,"who":null}',
        b'{"id":4294967296,"who":null}',
    ]
    assert len(site.json("connectors", "show", "a", "--revisions")["revisions"]) == 2


def test_a_run_that_follows_its_topic_goes_on_with_what_comes(inline_site: Site) -> None:
    site, origin = inline_site, f"{inline_site.topic}-in"
    send(site, origin, ("", b'{"id":1}'))
    site.apply("a", evolving(site, origin))
    site.waybill("run", "a")
    with ThreadPoolExecutor() as pool:
        running = pool.submit(site.json, "run", "a", "--window", "15s")
        for number, body in enumerate([b'{"id":2}', b'{"id":3,"a":true}', b'{"id":4}', b'{"id":5,"b":[1]}'], 2):
            send(site, origin, ("", body))
            deadline = time.monotonic() + 14
            while len(site.messages()) < number:
                assert time.monotonic() < deadline, "the message has not come"
        told = running.result()
    assert (told["delivered"], told["rejected"]) == (4, 0)
    assert sorted(fields(site)) == ["a", "b", "id"]
    assert [json.loads(body) for body in site.messages()] == [
        {"id": 1},
        {"id": 2},
        {"id": 3, "a": True},
        {"id": 4, "a": None},
        {"id": 5, "a": None, "b": [1]},
    ]
