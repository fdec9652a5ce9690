"""What Waybill knows of files of lines: see `sdk.plugin`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

from connect_core.sdk.plugin import Plugin, ProbeResult, Role
from connect_core.sdk.sink import Sink
from connect_core.sdk.source import Source
from connect_core.sdk.templates import OF_LINES
from connect_core.sdk.values import Json
from connect_core.systems.file.compatibility import conflict, files_read, files_written
from connect_core.systems.file.flat_keys import CLASSES
from connect_core.systems.file.guarantee import guarantee
from connect_core.systems.file.options import FileSinkOptions, FileSourceOptions, path_of_task

if TYPE_CHECKING:
    import pyarrow as pa


def _source(options: FileSourceOptions, resources: ExitStack | None) -> Source:
    from connect_core.systems.file.source import FileSource

    return FileSource(options)


def _sink(options: FileSinkOptions, resources: ExitStack | None) -> Sink:
    from connect_core.systems.file.sink import FileSink

    return FileSink(options)


def _set_aside(sink: Json) -> list[tuple[str, int]]:
    from connect_core.systems.file.aside import set_aside_beside

    tasks = sink.get("tasks", 1)
    return [found for task in range(tasks) for found in set_aside_beside(path_of_task(sink["path"], task, tasks))]


def _probe(role: Role, options: Json) -> Iterator[ProbeResult]:
    from connect_core.systems.file.probing import probe

    return probe(role, options)


def _peek_target(sink: Json, last: int) -> list[Json]:
    from connect_core.systems.file.peeking import peek

    return peek(sink, last)


def _peek_source(options: FileSourceOptions, last: int) -> pa.Table:
    from connect_core.systems.file.peeking import newest

    return newest(options, last)


PLUGIN = Plugin(
    name="file",
    title="Files of lines",
    source_options=FileSourceOptions,
    sink_options=FileSinkOptions,
    open_source=_source,
    open_sink=_sink,
    abilities=frozenset({"rereads"}),
    preload=(
        "connect_core.systems.file.following",
        "connect_core.systems.file.sink",
        "connect_core.systems.file.source",
        "connect_core.systems.file.writing",
    ),
    guarantee=guarantee,
    conflict=conflict,
    files_written=files_written,
    files_read=files_read,
    flat=CLASSES,
    source_fields=OF_LINES,
    unit="bytes",
    set_aside=_set_aside,
    probe=_probe,
    peek_target=_peek_target,
    peek_source=_peek_source,
)
