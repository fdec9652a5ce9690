"""What a file source and a file sink, of one connector or of two, can do to each other. Looks at nothing but which
files there are."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from glob import has_magic

from connect_core.sdk.plugin import ConfiguredEnd, Conflict, FilesRead, FilesWritten
from connect_core.sdk.values import Json
from connect_core.systems.expanding import expanded
from connect_core.systems.file.options import path_of_task
from connect_core.systems.file.patterns import matches, without_links

_OPTION, _SHARED = "path", "shared"


def conflict(source: ConfiguredEnd, sink: ConfiguredEnd) -> Conflict | None:
    """A connector that reads what it writes feeds itself and never ends."""
    written, read = sink.plugin.files_written(sink.options), source.plugin.files_read(source.options)
    if written is None or read is None or not read.reads(written.paths):
        return None
    words = f"is one of the files that the source reads ({source.options[read.option]})"
    return Conflict(("sink", sink.name, written.option), words)


def files_written(sink: Json) -> FilesWritten:
    """By every task."""
    path, tasks = str(sink.get(_OPTION)), sink.get("tasks") or 1
    return FilesWritten(_OPTION, [os.path.realpath(path_of_task(path, task, tasks)) for task in range(tasks)])


def files_read(source: Json) -> FilesRead:
    """The files that are found now, and those that will be by their names."""
    pattern = str(source.get(_OPTION))
    # It may hold symbolic links.
    forms = frozenset({pattern, without_links(pattern)})
    found = frozenset({*map(os.path.realpath, expanded(pattern)), *(form for form in forms if not has_magic(form))})
    wild = frozenset(filter(has_magic, forms))
    shared = bool(source.get(_SHARED, False))
    return FilesRead(_OPTION, lambda written: _reads_one_of(wild, found, written), _SHARED, shared)


def _reads_one_of(wild: Collection[str], found: Collection[str], written: Sequence[str]) -> bool:
    """Asked for each pair of many connectors."""
    return any(path in found or any(matches(path, form) for form in wild) for path in written)
