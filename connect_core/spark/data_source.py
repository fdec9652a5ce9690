"""The class that people register with Spark, and the reader and writer that Spark makes of it.

Spark makes each of these objects in a process of its own (schema, plan, tasks, commit) and passes copies on, so they
hold the options as they were written and nothing else: references are looked up where they are used.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    InputPartition,
    WriterCommitMessage,
)

from connect_core.spark import messages, reading, rows, writing
from connect_core.spark.options import ReadOptions, WriteOptions, checked

log = logging.getLogger(__name__)
# Nobody configures logging in Spark's processes. Whoever captures what they log gets the counts as well.
log.setLevel(logging.INFO)


class RocketMQDataSource(DataSource):  # type: ignore[misc]
    """Topics of RocketMQ under the name `rocketmq`, to read and to append to. Options: docs/spark-data-source.md."""

    @classmethod
    def name(cls) -> str:
        return "rocketmq"

    def schema(self) -> str:
        return rows.ddl(checked(ReadOptions, self.options))

    def reader(self, schema: Any) -> DataSourceReader:
        rows.check_schema(checked(ReadOptions, self.options), schema.fieldNames())
        return RocketMQReader(dict(self.options))

    def writer(self, schema: Any, overwrite: bool) -> DataSourceArrowWriter:
        messages.check_mode(overwrite)
        options = checked(WriteOptions, self.options)
        columns = messages.mapped([(field.name, field.dataType.simpleString()) for field in schema.fields], options)
        writing.prepare(options)
        return RocketMQWriter(dict(self.options), columns, uuid.uuid4().hex)


class RocketMQReader(DataSourceReader):  # type: ignore[misc]
    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(piece) for piece in reading.planned(checked(ReadOptions, self._options))]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        if partition is None:  # Spark makes one of none
            return iter(())
        return reading.read(checked(ReadOptions, self._options), partition.value)


@dataclass
class TaskWritten(WriterCommitMessage):  # type: ignore[misc]
    """What one task has written: messages by queue."""

    by_queue: Mapping[str, int]


class RocketMQWriter(DataSourceArrowWriter):  # type: ignore[misc]
    def __init__(self, options: Mapping[str, str], columns: messages.Mapped, job: str) -> None:
        self._options = options
        self._columns = columns
        self._job = job

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskWritten:
        options = checked(WriteOptions, self._options)
        partition = TaskContext.get().partitionId()
        return TaskWritten(writing.write(options, self._columns, iterator, self._job, partition))

    def commit(self, parts: Sequence[TaskWritten]) -> None:
        log.info("written: %s", writing.summary(part.by_queue for part in parts))

    def abort(self, parts: Sequence[TaskWritten | None]) -> None:
        told = writing.summary(part.by_queue for part in parts if part)
        log.warning("the job failed, and what it has written stays; its finished tasks: %s", told)
