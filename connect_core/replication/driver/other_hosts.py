"""What may be moved by workers on other hosts: nothing that is on the driver's host alone."""

from __future__ import annotations

from collections.abc import Iterator

from connect_core import systems
from connect_core.errors import ConfigError
from connect_core.work import Side


def require_reachable(source: Side, sink: Side, where: str) -> None:
    """Raises ConfigError for files. They were looked at by the driver: on another host the path leads to another file,
    or to none, which would be taken for a loss."""
    for told in _files(source, sink):
        raise ConfigError(
            f"Files are read and written on the host of the driver, but workers of this run are on other hosts: {told}",
            where=where,
            next_step="Run this connector with an engine whose workers are all on that host, such as inline",
        )


def _files(source: Side, sink: Side) -> Iterator[str]:
    """The options that name them."""
    reader, writer = systems.SYSTEMS.get(source.system), systems.SYSTEMS.get(sink.system)
    if reader and (read := reader.files_read(source.options)):
        yield f"source.{source.system}.{read.option}"
    if writer and (written := writer.files_written(sink.options)):
        yield f"sink.{sink.system}.{written.option}"
