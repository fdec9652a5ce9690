"""Every source and every sink as the contract suite sees it: how to build it, how to fill it, how to look into it."""

from __future__ import annotations

import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Sequence, Set
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pytest
from paho.mqtt.client import MQTTMessage

from connect_core.pipeline.shaping import Pipeline
from connect_core.rocketmq import Client, ClientOptions, Queue, StoredMessage, encode_batches
from connect_core.rocketmq.wire.properties import KEYS, value_of
from connect_core.sdk.records import Record
from connect_core.sdk.sink import Sink
from connect_core.sdk.source import Source
from connect_core.sdk.testing.sinks import Repeats
from connect_core.systems import sink, source
from connect_core.work import Side
from tests.mqtt_brokers import MqttBroker
from tests.mqtt_devices import listening

NOBODY = "127.0.0.1:1"
"""An address at which nobody listens."""
_ADDED = {"KEYS", "TAGS", "WAYBILL", "UNIQ_KEY", "BORN_TIMESTAMP", "MSG_REGION", "TRACE_ON", "CLUSTER", "WAIT"}


class SystemCase(ABC):
    """A fresh place in one system. `source` and `sink` build anew each time, as driver and worker do."""

    repeats: Repeats = "nothing"
    refused: bytes | None = None
    unkept: Set[str] = frozenset()

    @abstractmethod
    def source(self) -> Source: ...

    @abstractmethod
    def sink(self) -> Sink: ...

    @abstractmethod
    def append(self, values: Sequence[bytes | None]) -> None:
        """Records that somebody else writes, to one partition."""

    @abstractmethod
    def content(self, behind: int = 0) -> list[bytes]:
        """What stands in the sink's target, but for the first `behind` records, in order."""

    def records(self) -> Sequence[Record]:
        """As `content`, with keys and headers."""
        pytest.skip("the target has values alone")

    def break_(self) -> None:
        """The target does not answer any more, nor does the source."""
        pytest.skip("a file that is not there is no failure of its source: it may come")

    def count(self) -> int:
        """How many records that is."""
        return len(self.content())

    def outputs(self, records: pa.RecordBatch) -> pa.RecordBatch:
        """What a pipeline makes of them on their way to this sink."""
        return records


class FileCase(SystemCase):
    unkept = frozenset({"null", "every byte", "line feed", "carriage return", "NUL"})
    """A record is a line, and a file that holds NUL is refused unless the document says `binary`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "files"
        self._folder.mkdir()
        self._in, self._out = self._folder / "in.log", self._folder / "out.txt"

    def source(self) -> Source:
        return source(Side("file", {"path": str(self._in)}))

    def sink(self) -> Sink:
        return sink(Side("file", {"path": str(self._out)}))

    def append(self, values: Sequence[bytes | None]) -> None:
        with self._in.open("ab") as file:
            file.writelines((value or b"") + b"\n" for value in values)

    def content(self, behind: int = 0) -> list[bytes]:
        return self._out.read_bytes().split(b"\n")[:-1][behind:] if self._out.exists() else []


class FileSinkCase(FileCase):
    unkept = frozenset({"null", "every byte", "line feed", "carriage return"})
    """A record is a line: one without a value is an empty one, and a value with a line feed is refused."""

    def break_(self) -> None:
        self._folder.rename(self._folder.with_name("elsewhere"))


class RocketMQCase(SystemCase):
    unkept = frozenset({"null", "empty key"})
    """A message has a body, and KEYS is not there or not empty."""

    def __init__(self, name_servers: list[str], resources: ExitStack) -> None:
        self._client = resources.enter_context(Client(ClientOptions(tuple(name_servers))))
        self._resources = resources
        name = uuid.uuid4().hex[:12]
        self._out = f"out-{name}"
        (self._in,) = self._client.topics.create(f"in-{name}", 1)
        self._servers = {"name_servers": name_servers}

    def source(self) -> Source:
        return source(Side("rocketmq", {**self._servers, "topics": [self._in.topic]}), self._resources)

    def sink(self) -> Sink:
        return sink(Side("rocketmq", {**self._servers, "topic": self._out, "queues": 2}), self._resources)

    def append(self, values: Sequence[bytes | None]) -> None:
        sender = self._client.sender(self._in)
        bodies = [value or b"" for value in values]
        for batch in encode_batches(bodies, [b""] * len(bodies)):
            sender.submit(batch, deadline=time.monotonic() + 5)
        sender.finish(deadline=time.monotonic() + 5)
        self._client.barrier(self._in.broker, deadline=time.monotonic() + 5)

    def content(self, behind: int = 0) -> list[bytes]:
        return [bytes(message.body) for message in self._messages()][behind:]

    def records(self) -> list[Record]:
        """With the properties as they are stored, but for those that brokers and the sink add."""
        return [_record(message) for message in self._messages()]

    def break_(self) -> None:
        self._servers = {"name_servers": [NOBODY]}

    def _messages(self) -> list[StoredMessage]:
        """Queue by queue."""
        if not self._client.topics.exists(self._out):
            return []
        self._client.barrier(self._in.broker, deadline=time.monotonic() + 5)
        bounds = self._client.offsets.bounds(self._out)
        return [message for queue, seen in bounds.items() for message in self._read(queue, seen.begin, seen.end)]

    def _read(self, queue: Queue, begin: int, end: int) -> list[StoredMessage]:
        slices = self._client.read(queue, begin, end, deadline=time.monotonic() + 5)
        return [message for part in slices for message in part.messages]


def _record(message: StoredMessage) -> Record:
    stored = [pair.partition("\x01")[::2] for pair in message.properties.decode().split("\x02") if pair]
    key = next((value for name, value in stored if name == KEYS), None)
    headers = tuple((name, value) for name, value in stored if name not in _ADDED)
    return Record(bytes(message.body), key, headers)


class RocketMQByKeyCase(RocketMQCase):
    """One range is spread over three queues. Between queues there is no order: each record is put where it belongs
    when those of its key stand in order."""

    def sink(self) -> Sink:
        given = {**self._servers, "topic": self._out, "queues": 3, "order": "key"}
        return sink(Side("rocketmq", given), self._resources)

    def count(self) -> int:
        return len(self._messages())

    def content(self, behind: int = 0) -> list[bytes]:
        stored = sorted(self._messages(), key=lambda message: message.physical_offset)[behind:]
        places: dict[str | None, set[int]] = {}
        for message in stored:
            places.setdefault(value_of(message.properties, KEYS), set()).add(message.queue_id)
        assert all(len(queues) == 1 for queues in places.values()), "a key is in one queue"
        for queue in range(3):
            numbers = [int(message.body) for message in stored if message.queue_id == queue]
            assert numbers == sorted(numbers)
        return sorted((bytes(message.body) for message in stored), key=int)


class RocketMQByRulesCase(RocketMQCase):
    """Every record goes to the sink's topic, those of two keys to another one as well."""

    def sink(self) -> Sink:
        given = {**self._servers, "topic": self._out, "queues": 2, "rule_topics": [self._other]}
        return sink(Side("rocketmq", given), self._resources)

    @property
    def _other(self) -> str:
        return f"{self._out}-too"

    def outputs(self, records: pa.RecordBatch) -> pa.RecordBatch:
        too = {"name": "too", "when": "KEYS IN ('key 0', 'key 3')", "to": self._other}
        return Pipeline({"rules": [{"name": "all"}, too]}).shape(records).kept

    def count(self) -> int:
        return len(self._messages())

    def content(self, behind: int = 0) -> list[bytes]:
        """Of the sink's topic; the other one has to hold what it should, in the same order."""
        first = [bytes(message.body) for message in self._messages()]
        assert self._bodies(self._other) == [body for body in first if int(body) % 7 in (0, 3)]
        return first[behind:]

    def _bodies(self, topic: str) -> list[bytes]:
        if not self._client.topics.exists(topic):
            return []
        bounds = self._client.offsets.bounds(topic)
        messages = [one for queue, seen in bounds.items() for one in self._read(queue, seen.begin, seen.end)]
        return [bytes(message.body) for message in messages]


class MqttCase(SystemCase):
    """Of the sink alone: a source that pushes has a suite of its own."""

    repeats: Repeats = "unflushed"

    progress_every = 16
    unkept = frozenset({"null", "empty key", "key", "repeated header"})
    """Without a value a message is empty; an empty key is left out; user properties hold no control characters; of
    headers of one name the last one counts."""

    def __init__(self, broker: MqttBroker, resources: ExitStack) -> None:
        self._topic = f"contract/{uuid.uuid4().hex[:12]}"
        self._options = {
            "host": broker.host,
            "port": broker.port,
            "topic": self._topic,
            "progress_every": self.progress_every,
        }
        self._options |= {"uid": uuid.uuid4().hex[:12]}
        self._listener = resources.enter_context(listening(broker, self._topic))

    def source(self) -> Source:
        raise NotImplementedError

    def sink(self) -> Sink:
        return sink(Side("mqtt", self._options))

    def append(self, values: Sequence[bytes | None]) -> None:
        raise NotImplementedError

    def content(self, behind: int = 0) -> list[bytes]:
        return [bytes(message.payload) for message in self._listener.everything()][behind:]

    def records(self) -> list[Record]:
        """With the user properties as they came."""
        return [_publication(message) for message in self._listener.everything()]

    def break_(self) -> None:
        self._options = {**self._options, "port": int(NOBODY.partition(":")[2])}


class MqttKeepingCase(MqttCase):
    """It seldom waits for its progress: thousands of records are not to take a minute."""

    progress_every = 1000


def _publication(message: MQTTMessage) -> Record:
    pairs: list[tuple[str, str]] = getattr(message.properties, "UserProperty", [])
    key = next((value for name, value in pairs if name == "KEYS"), None)
    return Record(bytes(message.payload), key, tuple(pair for pair in pairs if pair[0] not in ("KEYS", "TAGS")))
