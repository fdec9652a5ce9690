"""The one clock of deadlines: CLOCK_BOOTTIME goes on while the machine sleeps and never steps (delivery rule 1)."""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path


def now_ns() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


@cache
def boot_id() -> str:
    """Names this boot of this host: times of another boot mean nothing here."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def place(home: Path) -> str:
    """Names the locks of a home on this boot: only who shares both can prove by locks that the other is gone."""
    locks = home / "locks"
    locks.mkdir(parents=True, exist_ok=True)
    seen = locks.stat()
    return f"{boot_id()}:{seen.st_dev}:{seen.st_ino}"
