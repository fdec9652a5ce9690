"""What Waybill knows of Files of lines: see `sdk.plugin`."""

from __future__ import annotations

from contextlib import ExitStack

from connect_core.sdk.plugin import Plugin
from connect_core.sdk.sink import Sink
from connect_core.sdk.source import Source
from connect_core.systems.file.compatibility import conflicts, files_read, files_written
from connect_core.systems.file.flat_keys import CLASSES
from connect_core.systems.file.options import FileSinkOptions, FileSourceOptions


def _source(options: FileSourceOptions, resources: ExitStack | None) -> Source:
    from connect_core.systems.file.source import FileSource

    return FileSource(options)


def _sink(options: FileSinkOptions, resources: ExitStack | None) -> Sink:
    from connect_core.systems.file.sink import FileSink

    return FileSink(options)


PLUGIN = Plugin(
    name="file",
    title="Files of lines",
    source_options=FileSourceOptions,
    sink_options=FileSinkOptions,
    open_source=_source,
    open_sink=_sink,
    conflicts=conflicts,
    files_written=files_written,
    files_read=files_read,
    flat=CLASSES,
)
