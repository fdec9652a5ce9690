"""The data source `rocketmq` in the resident engine: a topic read by Spark, and copied by Spark, beside the bare loops.

No connector and no ledger: what people's own jobs get. The session is there before the time is taken, the job's plan is
part of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any

from connect_core.engine.spark_session import connected
from connect_core.spark import RocketMQDataSource
from tests.bench.copies import fill, forget
from tests.bench.measures import compared
from tests.bench.place import Place, Timed
from tests.bench.telling import Row

MESSAGE_BYTES, QUEUES = 1_000, 2
_numbers = count(1)


def data_source(place: Place, messages: int, repeats: int) -> list[Row]:
    """Read with every column, read with the value alone, and copied with what a copy has columns for."""
    topic = f"source-{next(_numbers)}"
    fill(place, topic, messages, MESSAGE_BYTES, QUEUES)
    spark = connected(place.running.spark_remote)
    spark.dataSource.register(RocketMQDataSource)
    cluster = {"name_servers": place.name_servers}

    def read(**options: str) -> Any:
        return spark.read.format("rocketmq").options(**cluster, topics=topic, **options).load()

    def looked_at(**options: str) -> Timed:
        return _timed(read(**options).write.format("noop").mode("overwrite").save)

    def copied(headers: str) -> Timed:
        target = f"job-{next(_numbers)}"
        columns = read(columns="key, tags, value, headers", headers=headers)
        writer = columns.write.format("rocketmq").options(**cluster, topic=target)
        timed = _timed(writer.option("create", "true").option("queues", str(QUEUES)).mode("append").save)
        forget(place, target)
        return timed

    def bare_copy() -> float:
        target = f"bare-job-{next(_numbers)}"
        seconds = place.bare("across", topic, target)
        forget(place, target)
        return seconds

    def bare_read() -> float:
        return place.bare("read", topic)

    def measured(what: str, ours: Callable[[], Timed], bare: Callable[[], float]) -> Row:
        size = f"{QUEUES} queues, {messages:,} messages of {MESSAGE_BYTES:,} bytes"
        row = compared(f"data source, {what}, {size}", messages, ours, bare, repeats)
        return replace(row, remark=row.remark.partition(";")[0])

    return [
        measured("read, every column", looked_at, bare_read),
        measured("read, value alone", lambda: looked_at(columns="value"), bare_read),
        measured("read and appended", lambda: copied("map"), bare_copy),
        measured("read and appended, headers as stored", lambda: copied("binary"), bare_copy),
    ]


def _timed(job: Callable[[], None]) -> Timed:
    begun = time.monotonic()
    job()
    seconds = time.monotonic() - begun
    return Timed(seconds, {"job": seconds}, 0)
