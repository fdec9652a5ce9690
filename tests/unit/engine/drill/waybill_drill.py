"""A system for tests of the engines, found by its entry point as any plug-in: its options say what goes wrong.

The source does what `act` says and then gives `rows` records; the sink counts them and tells in the receipt which
process it was.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Literal

import pyarrow as pa
from pydantic import BaseModel

from connect_core.sdk.batches import RECORD_SCHEMA
from connect_core.sdk.plugin import Plugin
from connect_core.sdk.records import Partition
from connect_core.sdk.scan import ScanResult
from connect_core.sdk.sink import Scan, Targets
from connect_core.sdk.values import (
    Attempt,
    Bounds,
    Delivered,
    Floor,
    Json,
    Limit,
    OpenRange,
    Position,
    Range,
    SourceBatch,
)


class Options(BaseModel):
    """`act` happens before the first record; `seconds` is how long it takes; `note` is a file that tells its pid.

    Lanes that are to `meet` wait at most `seconds` until `party` of them have left a note in the folder of theirs.
    """

    act: Literal["nothing", "raise", "leave", "exit", "meet", "deaf", "until_stopped"] = "nothing"
    seconds: float = 0
    party: int = 1
    rows: int = 1
    note: Path | None = None
    secret: str = ""


class Drill:
    """Source and sink in one."""

    def __init__(self, options: Options, resources: ExitStack | None) -> None:
        self.options = options

    # ------------------------------------------------------------------------------------------------------ source

    def partitions(self, known: Sequence[Partition]) -> list[Partition]:
        return list(known)

    def topic(self, partition: Partition) -> str:
        return ""

    def available_offsets(self, known: Mapping[Partition, Position | None]) -> dict[Partition, Bounds]:
        return {}

    def read(self, wanted: Range, limit: Limit) -> Iterator[SourceBatch]:
        if self.options.act != "raise":
            self._act()
        while self.options.act == "until_stopped" and limit.quantum_left_s() > 0:
            time.sleep(0.01)
        offsets = range(wanted.begin, wanted.begin + self.options.rows)
        rows = [{"topic": "t", "value": b"v" * 1000, "offset": offset, "operation": 0} for offset in offsets]
        yield SourceBatch(pa.RecordBatch.from_pylist(rows, schema=RECORD_SCHEMA), offsets.stop)

    def wait(self, seen: Mapping[Partition, Bounds], limit_s: float) -> None:
        pass

    def follow(
        self, wanted: Sequence[Range], limit: Limit, idle_timeout_s: float
    ) -> Iterator[tuple[Range, SourceBatch]]:
        for one in wanted:
            yield from ((one, batch) for batch in self.read(one, limit))

    def evidence(self, wanted: Range, end: int) -> Json:
        return {}

    def commit_offsets(self, positions: Mapping[Partition, Position]) -> None:
        pass

    # -------------------------------------------------------------------------------------------------------- sink

    def target_leases(self, task: int) -> tuple[str, ...]:
        return ()

    def pinned_target_leases(self, target: Json) -> tuple[str, ...]:
        return ()

    def reaches(self, target: Json, name: str) -> bool:
        return True

    def targets(self, task: int, floors: Sequence[Floor], topics: Mapping[str, int]) -> Targets:
        return Targets({})

    def floors(self, wanted: Range, known: Sequence[Floor], *, restored: bool = False) -> tuple[Floor, ...]:
        return ()

    def scan(self, wanted: Scan) -> dict[int, ScanResult]:
        self._act()
        return {item.id: ScanResult({"t": os.getpid()}, complete=True) for item in wanted.ranges}

    def invalid_rows(self, records: pa.RecordBatch) -> list[tuple[int, str, str]]:
        return []

    @contextmanager
    def writer(self, attempt: Attempt, wanted: OpenRange) -> Iterator[Writer]:
        if self.options.act == "raise":  # of the target: what a source raises concerns its partition alone
            self._act()
        yield Writer()

    def _act(self) -> None:
        if self.options.note:
            self.options.note.write_text(str(os.getpid()))
        if self.options.act == "raise":
            raise ValueError(self.options.secret)
        if self.options.act == "leave":
            sys.exit(0)
        if self.options.act == "exit":
            print(f"SomeError: {self.options.secret}", flush=True)
            os._exit(7)
        if self.options.act == "deaf":
            _block_every_signal()
        if self.options.act == "meet":
            self._meet()
        else:
            time.sleep(self.options.seconds)

    def _meet(self) -> None:
        assert self.options.note is not None
        until = time.monotonic() + self.options.seconds
        while len(list(self.options.note.parent.iterdir())) < self.options.party:
            if time.monotonic() > until:
                raise TimeoutError("the others did not come")
            time.sleep(0.01)


class Writer:
    def __init__(self) -> None:
        self.rows = 0

    def write(self, records: pa.RecordBatch, limit: Limit) -> int:
        self.rows += len(records)
        return len(records)

    def flush(self, limit: Limit) -> Delivered:
        where = {
            "pid": os.getpid(),
            "task": _spark_task(),
            "peak_kb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        }
        return Delivered(self.rows, self.rows, {}, where)


def _spark_task() -> int | None:
    pyspark = sys.modules.get("pyspark")
    context = pyspark.TaskContext.get() if pyspark else None
    return context.partitionId() if context else None


def _block_every_signal() -> None:
    """By the C library, which leaves out nothing but what the kernel insists on."""
    every = (ctypes.c_ubyte * 128)(*[0xFF] * 128)
    ctypes.CDLL(None).sigprocmask(signal.SIG_BLOCK, every, None)


SYSTEM = Plugin("drill", "Drill", Options, Options, Drill, Drill)
