"""RocketMQ's own client for C++: what sends for the sink, and a stranger whose messages we read and who reads ours.

It works in processes of its own: the lanes' (the inline engine's children), and a program that these tests start.
"""

from __future__ import annotations

import base64
import json
import os
import random
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connect_core.errors import Unreachable
from connect_core.rocketmq import Client, ClientOptions, Queue, SendUnknown, StoredMessage, encode_batch
from connect_core.rocketmq.compression import decompress
from connect_core.rocketmq.wire import properties as text
from tests.faults.kit.topics import fill, records_of
from tests.servers import RocketMQ
from tests.site import Site
from tests.system.native.foreign_peer import SIZE

pytestmark = pytest.mark.server

NAME = "natively"
PEER = Path(__file__).with_name("foreign_peer.py")
LIMIT_S = 90
_SEEDED = random.Random(3)
BODIES = {
    "text": "Grüße".encode(),
    "binary": bytes(range(256)),
    "ends in zeros": b"\0end\0\0",
    "compressed": b"again and again " * 1_000,
    "1 MB": _SEEDED.randbytes(1_000_000),
}


@pytest.fixture
def native_site(bare_site: Site, rocketmq: RocketMQ, native_packages: Path) -> Site:
    """Its runs are made by the inline engine, in processes that find the package and its library. The library gives a
    first send no second try, and one takes seconds on a loaded machine."""
    bare_site.name_servers = rocketmq.name_servers
    patient = {"WAYBILL_LEASE_TTL_S": "60s", "WAYBILL_LEASE_MARGIN_S": "20s", "WAYBILL_SEND_TIMEOUT_S": "20s"}
    bare_site.settings |= {"WAYBILL_ENGINE": "inline", "PYTHONPATH": str(native_packages), **patient}
    return bare_site


@pytest.fixture
def client(native_site: Site) -> Iterator[Client]:
    with Client(ClientOptions(tuple(native_site.name_servers))) as opened:
        yield opened


def connector(site: Site, origin: str, name: str = NAME, **sink: Any) -> None:
    cluster = {"name_servers": site.name_servers[0]}
    ends = {
        "source": {"rocketmq": {**cluster, "topics": origin}},
        "sink": {"rocketmq": {**cluster, "topic": site.topic, "queues": 0, **sink}},
    }
    site.apply(name, {**ends, "errors": {"tolerance": "all"}})


def peer(packages: Path, *words: str, lines: str = "") -> str:
    """What the program printed."""
    root = Path(__file__).parents[3]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(packages), str(root)])}
    command = [sys.executable, str(PEER), *words]
    return subprocess.run(
        command, input=lines, env=environment, text=True, check=True, stdout=subprocess.PIPE, timeout=LIMIT_S
    ).stdout


def told(name: str, body: bytes) -> dict[str, Any]:
    """A message as the program is given it, and shows it."""
    properties = {"größe": f"naïve {name}", "emoji": "🜚", SIZE: str(len(body))}
    return {"body": base64.b64encode(body).decode(), "key": f"k-{name} k2", "tags": "tagged", "properties": properties}


def stored(client: Client, topic: str) -> list[StoredMessage]:
    found: list[StoredMessage] = []
    for broker in {queue.broker for queue in client.topics.read_queues(topic)}:  # what is stored is seen a little later
        client.barrier(broker, deadline=time.monotonic() + LIMIT_S)
    for queue, bounds in client.offsets.bounds(topic).items():
        for part in client.read(queue, bounds.begin, bounds.end, deadline=time.monotonic() + LIMIT_S):
            found += part.messages
    return found


def plain(message: StoredMessage) -> bytes:
    body = bytes(message.body)
    return decompress(message.sys_flag >> 8 & 7, body) if message.sys_flag & 1 else body


def test_what_it_writes_we_read_and_what_we_write_it_reads(
    native_site: Site, client: Client, native_packages: Path
) -> None:
    origin, name_server = f"{native_site.topic}-origin", native_site.name_servers[0]
    client.topics.create(origin, 1)
    messages = [told(name, body) for name, body in BODIES.items()]
    peer(native_packages, "produce", name_server, origin, lines="".join(json.dumps(one) + "\n" for one in messages))

    read = {text.decode(bytes(one.properties))["KEYS"]: one for one in stored(client, origin)}
    assert {key: plain(one) for key, one in read.items()} == {f"k-{name} k2": body for name, body in BODIES.items()}
    assert read["k-compressed k2"].sys_flag & 1  # the case is there
    for message in messages:
        seen = text.decode(bytes(read[message["key"]].properties))
        assert message["properties"].items() <= seen.items()
        assert seen["TAGS"] == "tagged"

    empty = text.encode({**told("empty", b"")["properties"], "KEYS": "k-empty k2", "TAGS": "tagged"})
    sender = client.sender(Queue(origin, "broker-a", 0))
    sender.submit(encode_batch([b""], [empty]), deadline=time.monotonic() + LIMIT_S)  # it has no way to write one
    sender.finish(deadline=time.monotonic() + LIMIT_S)
    connector(native_site, origin)
    run(native_site, NAME)

    group = f"group-{uuid.uuid4().hex[:12]}"
    client.groups.create(group)
    for queue in client.topics.read_queues(native_site.topic):
        client.groups.commit(group, queue, 0)  # else it begins behind what is there
    expected = [*messages, told("empty", b"")]
    printed = peer(native_packages, "consume", name_server, native_site.topic, group, str(len(expected)))
    shown = {one["key"]: one for one in map(json.loads, printed.splitlines())}
    for message in expected:
        one = shown.pop(message["key"])
        assert one["body"] == message["body"]
        assert one["ends"]
        assert one["tags"] == message["tags"]
        assert one["properties"].pop("WAYBILL")
        assert one["properties"].items() <= message["properties"].items()
    assert shown == {}


@pytest.mark.parametrize("order", ["queue", "key"])
def test_the_sink_sends_with_it_what_it_sends_with_our_own_client(
    native_site: Site, client: Client, order: str
) -> None:
    origin = f"{native_site.topic}-origin"
    bodies = [[b"%d in %d" % (number, queue) for number in range(100)] for queue in range(2)]
    keyed = [[text.encode({"KEYS": f"k{n % 7}", "DELAY": "3", "größe": "ü=\x01\x7f"}) for n in range(100)]] * 2
    fill(native_site.name_servers, origin, bodies, keyed)
    connector(native_site, origin, client="native", order=order)
    run(native_site, NAME)
    natively = [(one.queue_id, bytes(one.body), own(one)) for one in stored(client, native_site.topic)]

    connector(native_site, origin, name="beside", order=order, topic=f"{native_site.topic}-beside")
    native_site.waybill("run", "beside")
    beside = [(one.queue_id, bytes(one.body), own(one)) for one in stored(client, f"{native_site.topic}-beside")]
    assert len(natively) == 200
    assert in_queues(natively) == in_queues(beside)


def run(site: Site, name: str) -> None:
    """The library gives up where a busy broker is slow, and does not say why. The next attempt goes on."""
    for _ in range(2):
        try:
            site.waybill("run", name)
            return
        except AssertionError as failed:
            if not any(f"ended with {code}:" in str(failed) for code in (SendUnknown.exit_code, Unreachable.exit_code)):
                raise
    site.waybill("run", name)


def own(message: StoredMessage) -> dict[str, str]:
    """Its user's properties."""
    theirs = {"UNIQ_KEY", "WAYBILL", "WAIT", "MSG_REGION", "TRACE_ON", "CLUSTER"}
    return {name: value for name, value in text.decode(bytes(message.properties)).items() if name not in theirs}


def in_queues(messages: list[tuple[int, bytes, dict[str, str]]]) -> dict[int, list[tuple[bytes, dict[str, str]]]]:
    """Those of one source queue keep their order; of several that share a queue each keeps its own."""
    found: dict[int, list[tuple[bytes, dict[str, str]]]] = {}
    for queue, body, properties in messages:
        found.setdefault(queue, []).append((body, properties))
    return {queue: sorted(many, key=lambda one: one[0].split()[-1]) for queue, many in found.items()}


def test_what_it_cannot_send_is_a_dead_letter(native_site: Site, client: Client) -> None:
    origin = f"{native_site.topic}-origin"
    fill(
        native_site.name_servers,
        origin,
        [[b"first", b"", b"cut", b"last"]],
        [[b"", b"", text.encode({"name": "a\0b"}), b""]],
    )
    connector(native_site, origin, client="native")
    run(native_site, NAME)
    assert [bytes(one.body) for one in stored(client, native_site.topic)] == [b"first", b"last"]
    letters = native_site.json("dead-letters", "list", NAME)
    assert sorted(one["kind"] for one in letters["dead_letters"]) == ["EmptyBody", "IllegalProperty"]


def test_a_message_is_stored_nowhere_when_the_topic_has_another_number_of_queues(
    native_site: Site, client: Client, native_packages: Path
) -> None:
    client.topics.create(native_site.topic, 2)
    printed = peer(native_packages, "misled", native_site.name_servers[0], native_site.topic)
    assert printed.split() == ["None", "0"]
    assert records_of(native_site.name_servers, native_site.topic) == {f"{native_site.topic}/broker-a/1": [b"there"]}


@pytest.mark.parametrize("lacks", ["the package", "the library"])
def test_what_is_missing_is_named_and_what_to_do(
    native_site: Site, client: Client, package_without_library: Path, lacks: str
) -> None:
    origin = f"{native_site.topic}-origin"
    fill(native_site.name_servers, origin, [[b"one"]])
    connector(native_site, origin, client="native")
    native_site.settings["PYTHONPATH"] = str(package_without_library) if lacks == "the library" else ""
    error = native_site.waybill("run", NAME, code=2)
    named = "librocketmq.so" if lacks == "the library" else "pip install 'waybill[native]'"
    assert named in error, error
    assert records_of(native_site.name_servers, native_site.topic) == {}
