"""The data source `rocketmq` in a real Spark (the resident Spark Connect server), against a real broker."""

from __future__ import annotations

import json
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql.connect.functions import spark_partition_id

from connect_core.rocketmq import Client, ClientOptions, Queue, encode_batch
from connect_core.spark import RocketMQDataSource
from tests.faults.kit.retention import expiring
from tests.servers import RocketMQ

pytestmark = pytest.mark.server

QUEUES = 2


@dataclass
class Job:
    """A session that knows the data source, and one topic of its own for each test."""

    spark: Any
    client: Client
    name_servers: str
    topic: str = field(default_factory=lambda: f"ds-{uuid.uuid4().hex[:12]}")

    def made(self) -> list[Queue]:
        return self.client.topics.create(self.topic, QUEUES)

    def send(self, queue: Queue, bodies: list[bytes], properties: list[bytes] | None = None) -> None:
        sender = self.client.sender(queue)
        sender.submit(encode_batch(bodies, properties or [b""] * len(bodies)), deadline=time.monotonic() + 5)
        sender.finish(deadline=time.monotonic() + 5)

    def read(self, **options: object) -> Any:
        """Of the topic, unless told; a name that is a word of Python has an underscore behind it."""
        given = {} if "bounds" in options else {"topics": self.topic}
        given |= {"name_servers": self.name_servers} | {name.rstrip("_"): value for name, value in options.items()}
        return self.spark.read.format("rocketmq").options(**given).load()

    def write(self, frame: Any, mode: str = "append", **options: object) -> None:
        given = {"name_servers": self.name_servers, "topic": self.topic, "create": "true", "queues": QUEUES} | options
        given = {name: value for name, value in given.items() if value is not None}
        frame.write.format("rocketmq").options(**given).mode(mode).save()

    def frame(self, rows: list[tuple[object, ...]], schema: str) -> Any:
        return self.spark.createDataFrame(rows, schema)


@pytest.fixture(scope="module")
def session(spark_remote: str) -> Any:
    from connect_core.engine.spark_session import connected

    # One of its own: the page's test registers the same name in the one that all share, maybe at this moment.
    spark = connected(f"{spark_remote};session_id={uuid.uuid4()}")
    spark.dataSource.register(RocketMQDataSource)
    return spark


@pytest.fixture
def job(session: Any, rocketmq: RocketMQ) -> Iterator[Job]:
    with ExitStack() as resources:
        client = resources.enter_context(Client(ClientOptions(tuple(rocketmq.name_servers))))
        yield Job(session, client, ";".join(rocketmq.name_servers))


def bodies(frame: Any) -> list[bytes]:
    return [bytes(row.value) for row in frame.collect()]


def test_everything_is_read_with_all_that_a_message_has(job: Job) -> None:
    first, second = job.made()
    values = [b"a", b"", "größe \u2603".encode(), b"\x00\xff" * 50_000]
    job.send(first, values, [b"KEYS\x01k1 k2\x02TAGS\x01t\x02", b"", "größe\x01ß\x02".encode(), b""])
    job.send(second, [b"b"])
    now = datetime.now(UTC)
    frame = job.read()
    assert frame.columns == ["topic", "queue", "offset", "key", "tags", "value", "headers", "timestamp", "stored_at"]
    rows = frame.collect()
    assert [(row.topic, row.queue, row.offset) for row in rows] == [
        *((job.topic, str(first), offset) for offset in range(4)),
        (job.topic, str(second), 0),
    ]
    assert [bytes(row.value) for row in rows] == [*values, b"b"]
    assert [(row.key, row.tags, row.headers) for row in rows[:3]] == [
        ("k1 k2", "t", None),
        (None, None, None),
        (None, None, {"größe": "ß"}),
    ]
    for row in rows:
        for moment in (row.timestamp, row.stored_at):
            assert abs((now - moment.astimezone(UTC)).total_seconds()) < 60


def test_a_long_queue_is_read_by_several_tasks_and_its_order_stays(job: Job) -> None:
    first, second = job.made()
    for begin in range(0, 2_500, 500):
        job.send(first, [b"%d" % number for number in range(begin, begin + 500)])
    job.send(second, [b"x"])
    frame = job.read(range_records=1_000, columns="offset,value")
    assert bodies(frame) == [*(b"%d" % number for number in range(2_500)), b"x"]
    by_task = frame.groupBy(spark_partition_id()).count().collect()
    assert sorted(count for _, count in by_task) == [1, 833, 833, 834]


def test_only_what_was_stored_in_a_time(job: Job) -> None:
    queue, _ = job.made()
    job.send(queue, [b"before"])
    moments = []
    for body in (b"first", b"second"):
        moments.append(after_now())
        job.send(queue, [body])
    begin, end = (moment.isoformat() for moment in moments)
    assert bodies(job.read(from_=begin)) == [b"first", b"second"]
    assert bodies(job.read(to=end)) == [b"before", b"first"]
    assert bodies(job.read(from_=begin, to=end)) == [b"first"]


def after_now() -> datetime:
    """A moment that is past, and later than anything that was stored before the call (brokers store milliseconds)."""
    seen = int(time.time() * 1000)
    while int(time.time() * 1000) <= seen:
        time.sleep(0.0005)
    return datetime.fromtimestamp((seen + 1) / 1000, UTC)


def test_only_the_bounds_of_each_queue_and_the_columns_that_are_named(job: Job) -> None:
    first, second = job.made()
    for queue in (first, second):
        job.send(queue, [b"%d-%d" % (queue.queue_id, number) for number in range(6)])
    frame = job.read(bounds=json.dumps({str(first): [1, 3], str(second): [4, None]}), columns="value, queue, offset")
    assert frame.columns == ["value", "queue", "offset"]
    assert [(bytes(row.value), row.offset) for row in frame.collect()] == [
        (b"0-1", 1),
        (b"0-2", 2),
        (b"1-4", 4),
        (b"1-5", 5),
    ]
    assert job.read(bounds=json.dumps({str(first): [3, 3]})).collect() == []


def test_what_is_not_there_fails_the_job_unless_that_is_accepted(job: Job) -> None:
    queue, _ = job.made()
    job.send(queue, [b"0", b"1", b"2"])
    bounds = json.dumps({str(queue): [1, 10]})
    with pytest.raises(Exception, match=rf"OffsetGone.*{queue} from 3 to 10 \(the queue ends at 3\)"):
        job.read(bounds=bounds).collect()
    rows = job.read(bounds=bounds, on_data_loss="skip", columns="queue,offset,value").collect()
    assert [row.value and bytes(row.value) for row in rows] == [b"1", b"2", None]
    assert (rows[2].queue, rows[2].offset) == (str(queue), 3)
    assert [row.gap and tuple(row.gap) for row in rows] == [None, None, (3, 10, "the queue ends at 3")]


def test_a_beginning_that_has_expired_fails_the_job_unless_that_is_accepted(job: Job, rocketmq: RocketMQ) -> None:
    """Retention took the first messages of both queues: of one all that was asked for, of the other the beginning."""
    first, second = job.made()
    job.send(first, [b"gone"] * 5)
    job.send(second, [b"gone"] * 3)
    with expiring(rocketmq, job.topic):
        job.send(second, [b"there"] * 4)
    bounds = json.dumps({str(first): [1, 4], str(second): [0, 6]})
    with pytest.raises(Exception, match=f"OffsetGone: .*{first}") as failed:
        job.read(bounds=bounds).collect()
    assert "the oldest message there is has offset 5" in str(failed.value)
    rows = job.read(bounds=bounds, on_data_loss="skip").collect()
    gaps = {row.queue: (row.offset, *row.gap) for row in rows if row.gap}
    assert gaps == {
        str(first): (1, 1, 4, "the oldest message there is has offset 5"),
        str(second): (0, 0, 3, "the oldest message there is has offset 3"),
    }
    there = [(row.queue, row.offset, bytes(row.value)) for row in rows if not row.gap]
    assert there == [(str(second), offset, b"there") for offset in (3, 4, 5)]
    assert len(job.read().collect()) == 4, "with topics alone nothing is asked for that is not there"


def test_what_was_written_comes_back_byte_for_byte(job: Job) -> None:
    values = [b"a", b"", "größe \u2603\U0001f4e6".encode(), bytes(range(256)), b"\x01\x02" * 70_000, None]
    headers = [{"farbe": "grün \u2603", "a.b": "1"}, None, {}, {"x": "\x01"}, None, None]
    keys = ["k\u00e9y", None, "", "k 2", None, "k"]
    rows = [(value, key, "t\u00e4g", header) for value, key, header in zip(values, keys, headers, strict=True)]
    job.write(job.frame(rows, "value binary, key string, tags string, headers map<string,string>").coalesce(1))
    back = job.read().collect()
    assert [bytes(row.value) for row in back] == [value or b"" for value in values]
    assert [row.key for row in back] == ["k\u00e9y", None, None, "k 2", None, "k"]
    assert [row.headers for row in back] == [headers[0], None, None, headers[3], None, None]
    assert {row.tags for row in back} == {"t\u00e4g"}
    assert len({row.queue for row in back}) == 1


def test_headers_are_handed_through_as_they_are_stored(job: Job) -> None:
    headers = [{"farbe": "grün \u2603", "a.b": "1"}, None, {"x": "\x01"}]
    job.write(job.frame([("v", one) for one in headers], "value string, headers map<string,string>").coalesce(1))
    job.write(job.read(columns="value,headers", headers="binary"))
    assert Counter(str(row.headers) for row in job.read().collect()) == Counter(map(str, headers * 2))


def test_each_partition_of_a_frame_stays_in_order_and_columns_have_any_name(job: Job) -> None:
    frame = job.spark.range(0, 6_000, 1, 3).selectExpr("CAST(id AS string) AS body")
    job.write(frame, value_column="body")
    by_queue: dict[str, list[int]] = {}
    for row in job.read(columns="queue,value").collect():
        by_queue.setdefault(row.queue, []).append(int(row.value))
    first, second = (by_queue[name] for name in sorted(by_queue))
    assert sorted(first) == [*range(2_000), *range(4_000, 6_000)]
    assert [number for number in first if number < 2_000] == list(range(2_000))
    assert [number for number in first if number >= 2_000] == list(range(4_000, 6_000))
    assert second == list(range(2_000, 4_000))


def test_equal_keys_share_a_queue_in_order(job: Job) -> None:
    frame = job.spark.range(0, 3_000, 1, 1).selectExpr("CAST(id AS string) value", "CONCAT('k', id % 7) AS key")
    job.write(frame, routing="key")
    rows = job.read(columns="queue,key,value").collect()
    queues: dict[str, set[str]] = {}
    numbers: dict[str, list[int]] = {}
    for row in rows:
        queues.setdefault(row.key, set()).add(row.queue)
        numbers.setdefault(row.key, []).append(int(row.value))
    assert all(len(found) == 1 for found in queues.values())
    assert numbers == {f"k{key}": list(range(key, 3_000, 7)) for key in range(7)}
    assert len({row.queue for row in rows}) == QUEUES


def test_a_column_says_the_topic_of_each_row(job: Job) -> None:
    job.made()
    other = f"{job.topic}-other"
    job.client.topics.create(other, 1)
    frame = job.frame([("a", job.topic), ("b", other), ("c", job.topic)], "value string, topic string").coalesce(1)
    job.write(frame, topic=None, create=None, queues=None)
    back = job.read(topics=f"{job.topic},{other}", columns="topic,value").collect()
    assert sorted((row.topic, bytes(row.value)) for row in back) == [
        (job.topic, b"a"),
        (job.topic, b"c"),
        (other, b"b"),
    ]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"topcs": "x"}, 'unknown key "topcs"; did you mean topics'),
        ({"topics": "there-is-no-such-topic"}, "TopicMissing"),
        ({"name_servers": "127.0.0.1:1"}, "Unreachable|ConnectionLost|cannot connect|refused"),
        ({"password": "only-in-a-test"}, "user and password go together"),
    ],
)
def test_wrong_options_are_told(job: Job, options: dict[str, str], told: str) -> None:
    with pytest.raises(Exception, match=told) as raised:
        job.read(**options).collect()
    assert "only-in-a-test" not in str(raised.value)


def test_a_queue_that_is_not_there_is_told(job: Job) -> None:
    first, second = job.made()
    with pytest.raises(Exception, match=f"there is no queue {job.topic}/elsewhere/0; there are {first}, {second}"):
        job.read(bounds=json.dumps({f"{job.topic}/elsewhere/0": [0, 1]})).collect()


@pytest.mark.parametrize(
    ("schema", "row", "options", "told"),
    [
        ("value int", (1,), {}, "value: is int, but value must be binary or string"),
        ("value string", ("a",), {"create": "false"}, "TopicMissing: The topic does not exist"),
        ("value string, headers map<string,string>", ("a", {"DELAY": "3"}), {}, "means something to RocketMQ"),
    ],
)
def test_rows_that_are_no_messages_are_refused(
    job: Job, schema: str, row: tuple[object, ...], options: dict[str, str], told: str
) -> None:
    with pytest.raises(Exception, match=told):
        job.write(job.frame([row], schema), **options)


@pytest.mark.parametrize(
    ("mode", "told"), [("overwrite", "A topic cannot be overwritten"), ("error", "SAVE_MODE"), ("ignore", "SAVE_MODE")]
)
def test_modes_that_mean_nothing_are_refused(job: Job, mode: str, told: str) -> None:
    with pytest.raises(Exception, match=told):
        job.write(job.frame([("a",)], "value string"), mode)
    assert not job.client.topics.exists(job.topic)


def test_no_secret_is_in_a_plan(job: Job, capfd: pytest.CaptureFixture[str]) -> None:
    queue, _ = job.made()
    job.send(queue, [b"a"])
    frame = job.read(user="somebody", password="only-in-a-test")
    frame.explain(extended=True)
    plan = capfd.readouterr().out
    assert "rocketmq" in plan
    assert "only-in-a-test" not in plan
    assert bodies(frame) == [b"a"]
