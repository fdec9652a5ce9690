"""A job of somebody with a classic Spark, as a program: runs what the page shows, then a task that fails in its middle.

The last line that it prints says as JSON what it saw.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession

from connect_core.rocketmq import Client, ClientOptions, Queue

LOGGING = "spark.sql.pyspark.worker.logging.enabled"
ROWS, BATCH = 10_000, 1_000
ARRIVES_S = 30.0

Batches = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def failing_once(name_servers: str, queue: Queue) -> Batches:
    """Passes rows on in batches. When the task runs for the first time it fails before the last of them, as soon as the
    first are in the queue."""

    def passed_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        first = TaskContext.get().attemptNumber() == 0
        for number, batch in enumerate(batches, 1):
            if first and number * BATCH >= ROWS:
                wait_until_written(name_servers, queue)
                raise RuntimeError("the first attempt ends here")
            yield batch

    return passed_on


def wait_until_written(name_servers: str, queue: Queue) -> None:
    until = time.monotonic() + ARRIVES_S
    with Client(ClientOptions((name_servers,))) as client:
        while not client.offsets.end(queue) and time.monotonic() < until:
            time.sleep(0.05)


def main(page: Path, name_servers: str, broker: str, topic: str) -> dict[str, object]:
    shown: dict[str, object] = {}
    exec(compile(page.read_text(), str(page), "exec"), shown)

    spark = SparkSession.builder.getOrCreate()
    spark.conf.set(LOGGING, "true")
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", BATCH)
    numbers = spark.range(0, ROWS, 1, 1).selectExpr("LPAD(CAST(id AS string), 1000, '0') AS value")
    frame = numbers.mapInArrow(failing_once(name_servers, Queue(topic, broker, 0)), "value string")
    cluster = {"name_servers": name_servers}
    written = {"topic": topic, "create": "true", "queues": "1"}
    frame.write.format("rocketmq").options(**cluster, **written).mode("append").save()

    def read(**options: str) -> list[Any]:
        rows: list[Any] = spark.read.format("rocketmq").options(**cluster, **options).load().collect()
        return rows

    queue = read(topics=topic, columns="queue")[0].queue
    rows = read(bounds=json.dumps({queue: [0, 1 << 40]}), on_data_loss="skip", columns="value")
    logs = spark.tvf.python_worker_logs().collect()
    return {
        "values": [int(row.value) for row in rows if row.gap is None],
        "gaps": [row.gap.asDict() for row in rows if row.gap is not None],
        "logs": sorted({f"{row.level} {row.msg}" for row in logs}),
        "queue": queue,
    }


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), *sys.argv[2:])))
