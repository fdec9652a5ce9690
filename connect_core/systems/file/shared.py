"""Files that several hosts share: which device number what another host has seen has on this one.

The hosts of a shared file system agree on its inodes. The number of the device is each host's own, also that of a mount
that follows another. But evidence says in which folder a file was: on this host its device is that of this folder.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

from connect_core.sdk.records import Partition
from connect_core.sdk.values import Json, Position


class SharedFolders:
    """For one look: each folder is asked once."""

    def __init__(self) -> None:
        self._devices: dict[str, int | None] = {}

    def positions_here(
        self, begun: Sequence[tuple[Partition, Position | None]]
    ) -> list[tuple[Partition, Position | None]]:
        return [(one, at and replace(at, evidence=self.as_here(at.evidence))) for one, at in begun]

    def as_here(self, evidence: Json) -> Json:
        """The evidence of a file, and of those before it (`identity`), as this host would have it."""
        here = dict(evidence)
        if "dev" in evidence:
            here |= self._device_in(os.path.dirname(evidence["path"]))
        if former := evidence.get("former"):
            here["former"] = [{**one, **self._device_in(one.get("folder", ""))} for one in former]
        return here

    def _device_in(self, folder: str) -> Json:
        """Empty where nobody knows it."""
        if folder not in self._devices:
            self._devices[folder] = _device(folder)
        device = self._devices[folder]
        return {} if device is None else {"dev": device}


def _device(folder: str) -> int | None:
    """Of a folder that is gone, that of the one above it: what was in it is on that file system, if anywhere."""
    while folder:
        try:
            return os.stat(folder).st_dev
        except OSError:
            above = os.path.dirname(folder)
            folder = "" if above == folder else above
    return None
