"""What may be moved by workers on other hosts: nothing that is on the driver's host alone."""

from __future__ import annotations

from connect_core import systems
from connect_core.errors import ConfigError
from connect_core.work import Side

_ELSEWHERE = "but workers of this run are on other hosts"
_ALL_HERE = "Run this connector with an engine whose workers are all on that host, such as inline"


def require_reachable(source: Side, sink: Side, where: str) -> None:
    """Raises ConfigError for files that the document does not state to be shared. They were looked at by the driver: on
    another host the path leads to another file, or to none, which would be taken for a loss. And for any that are
    written: see docs/decisions/shared-file-systems.md."""
    for role, side in (("source", source), ("sink", sink)):
        plugin = systems.SYSTEMS.get(side.system)
        if plugin and (option := plugin.on_this_host(side.options)):
            words = f"A file of the driver's host is named, {_ELSEWHERE}: {role}.{side.system}.{option}"
            raise ConfigError(words, where=where, next_step=_ALL_HERE)
    reader, writer = systems.SYSTEMS.get(source.system), systems.SYSTEMS.get(sink.system)
    if reader and (read := reader.files_read(source.options)) and not read.shared:
        own = f"source.{source.system}"
        stating = f"; or, if all hosts share these files, state it: {own}.{read.shared_by}: true" * bool(read.shared_by)
        raise ConfigError(
            f"Files are read on the host of the driver, {_ELSEWHERE}: {own}.{read.option}",
            where=where,
            next_step=_ALL_HERE + stating,
        )
    if writer and (written := writer.files_written(sink.options)):
        raise ConfigError(
            f"Files are written on the host of the driver, {_ELSEWHERE}: sink.{sink.system}.{written.option}. On a "
            "shared file system, too: what a worker on another host was writing when it was killed may reach the file "
            "after the next worker has written there",
            where=where,
            next_step=_ALL_HERE,
        )
