"""Whether something has happened to a file, and how often that is looked at."""

from __future__ import annotations

import os

LOOK_S = 0.002
LOOK_EACH_S = 0.00004
"""The pause between two looks: the first for few files; the second for each of many, so that looking takes a small part
of a core."""

Signature = tuple[int, int, int, int]


def signature(path: str) -> Signature | None:
    """What changes when something happens to a file; None while there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def pause_s(files: int) -> float:
    return max(LOOK_S, files * LOOK_EACH_S)
