"""Topics as they are: filled by a test, read by RocketMQ's own Java client and, beside it, by ours.

A comparison of the product's output with what the product's own client shows could be blind on both sides at once, so
the records of a topic are those that the Java client prints. One process reads for a whole session; it is started from
source on the jars of the stack.
"""

from __future__ import annotations

import base64
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from connect_core.errors import WaybillError
from connect_core.rocketmq import Client, ClientOptions, Queue, encode_batch
from connect_core.stack import jars, java
from tests.servers import RocketMQ

_SOURCE = Path(__file__).with_name("TopicReader.java")
_SILENT = '<configuration><root level="OFF"/></configuration>'
"""For its log, which would else stand between the records."""
_BATCH = 1_000


class JavaReader:
    """RocketMQ's own client in a process of its own."""

    def __init__(self, rocketmq: RocketMQ, folder: Path) -> None:
        folder.mkdir()
        lib = jars.fetch(rocketmq.version)
        (folder / "logback.xml").write_text(_SILENT)
        command = [
            str(java.find(jars.cache_folder())),
            *("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx256m", f"-Duser.home={folder}"),
            f"-Drmq.logback.configurationFile={folder / 'logback.xml'}",
            *("-cp", f"{lib}/*", str(_SOURCE), ";".join(rocketmq.name_servers)),
        ]
        self._log = (folder / "log").open("w")
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True, cwd=folder
        )

    def records(self, topic: str) -> dict[str, list[bytes]]:
        """The bodies of each queue (`topic/broker/queueId`) that holds any, in order of offset."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(topic, file=self._process.stdin, flush=True)
        found: dict[str, list[bytes]] = {}
        while (line := self._process.stdout.readline().rstrip("\n")) != ".":
            if not line or line.startswith("!") or line.count(" ") != 3:
                raise AssertionError(f"RocketMQ's own client cannot read {topic}: {line or 'it has ended'}")
            broker, queue_id, _, body = line.split(" ")
            found.setdefault(f"{topic}/{broker}/{queue_id}", []).append(base64.b64decode(body))
        return found

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()
        self._log.close()


def records_of(name_servers: Sequence[str], topic: str) -> dict[str, list[bytes]]:
    """The same, read by our client library, once all that was acknowledged can be seen (delivery rule 4). Whether the
    brokers let us write is not the question here."""
    found: dict[str, list[bytes]] = {}
    with Client(ClientOptions(name_servers=tuple(name_servers))) as client:
        with suppress(WaybillError):
            for broker in client.brokers.masters():
                client.barrier(broker, deadline=time.monotonic() + 10)
        for queue, bounds in client.offsets.bounds(topic).items():
            for part in client.read(queue, bounds.begin, bounds.end, deadline=time.monotonic() + 60):
                found.setdefault(str(queue), []).extend(bytes(message.body) for message in part.messages)
    return found


def fill(
    name_servers: Sequence[str],
    topic: str,
    queues: Sequence[Sequence[bytes]],
    properties: Sequence[Sequence[bytes]] = (),
) -> dict[str, list[bytes]]:
    """Creates the topic when it is missing and stores these records, a list a queue, with these properties; returns
    the records by queue."""
    properties = properties or [[b""] * len(records) for records in queues]
    deadline = time.monotonic() + 60
    with Client(ClientOptions(name_servers=tuple(name_servers))) as client:
        if not client.topics.exists(topic):
            client.topics.create(topic, len(queues))
        targets = client.topics.write_queues(topic)
        for queue, records, theirs in zip(targets, queues, properties, strict=True):
            _send(client, queue, records, theirs, deadline)
        for broker in {queue.broker for queue in targets}:
            client.barrier(broker, deadline=deadline)
    return {str(queue): list(records) for queue, records in zip(targets, queues, strict=True)}


def _send(client: Client, queue: Queue, records: Sequence[bytes], properties: Sequence[bytes], deadline: float) -> None:
    sender = client.sender(queue)
    for begin in range(0, len(records), _BATCH):
        part = slice(begin, begin + _BATCH)
        sender.submit(encode_batch(records[part], properties[part]), deadline=deadline)
    sender.finish(deadline=deadline)


def delete(name_servers: Sequence[str], topic: str) -> None:
    with Client(ClientOptions(name_servers=tuple(name_servers))) as client:
        client.topics.delete(topic)
