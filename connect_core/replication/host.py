"""Where moments and locks mean something: on one boot of one host, in one folder (delivery rules 1 and 3)."""

from __future__ import annotations

from functools import cache
from pathlib import Path


@cache
def boot_id() -> str:
    """Names this boot of this host: times of another boot mean nothing here."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def host_identity(home: Path) -> str:
    """Names the locks of a home on this boot: only who shares both can prove by locks that the other is gone."""
    locks = home / "locks"
    locks.mkdir(parents=True, exist_ok=True)
    seen = locks.stat()
    return f"{boot_id()}:{seen.st_dev}:{seen.st_ino}"


def on_this_boot(seen: str) -> bool:
    """Whether the moments of a `host_identity` are of our clock, in whatever folder its locks are."""
    return seen.startswith(f"{boot_id()}:")
