"""Which file of a log is the last one of a run: the one that was at its path when the run first saw one there.

What comes to the path behind it is the next run's, or the log could be rotated faster than a run follows. Identity
tells it, not time: clocks are set back, and file systems on other machines have their own.
"""

from __future__ import annotations

from connect_core.sdk.records import Partition
from connect_core.sdk.values import Bounds
from connect_core.systems.file.folders import Folders
from connect_core.systems.file.identity import Evidence, OpenFile

_Identity = tuple[int, int, int]


class LastFiles:
    """Of one source, as long as it lives: a driver makes one for each run."""

    def __init__(self) -> None:
        self._last: dict[Partition, _Identity] = {}
        self._over: dict[Partition, int] = {}

    def at_path(self, partition: Partition, file: OpenFile) -> None:
        """What is there now, and is the partition's to read. The first one counts."""
        self._last.setdefault(partition, _identity(file))

    def is_passed(self, folders: Folders, partition: Partition, there: Bounds) -> bool:
        """Whether what is `there` came behind the last file. One that is not found any more would never be reached:
        then the one that is read now is the last."""
        seen, last = Evidence.of(there.evidence), self._last.get(partition)
        if seen is None or last is None:
            return False
        if partition not in self._over and (_identity(seen) == last or not _is_there(folders, partition, last)):
            self._over[partition] = there.incarnation
        return there.incarnation > self._over.get(partition, there.incarnation)


def _identity(file: OpenFile | Evidence) -> _Identity:
    return file.dev, file.ino, file.born


def _is_there(folders: Folders, partition: Partition, last: _Identity) -> bool:
    with folders.moved(last[1], (partition.key,), lambda file: _identity(file) == last) as found:
        return found is not None
