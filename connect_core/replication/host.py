"""Where moments and locks mean something: on one boot of one host, in one folder (delivery rules 1 and 3)."""

from __future__ import annotations

from functools import cache
from pathlib import Path

_ELSEWHERE = ":hosts"


@cache
def boot_id() -> str:
    """Names this boot of this host: times of another boot mean nothing here."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def host_identity(home: Path, *, lanes_elsewhere: bool = False) -> str:
    """Names the locks of a home on this boot: only who shares both can prove by locks that the other is gone. Those of
    a run with lanes on other hosts too prove nothing, and have a name that nobody else has."""
    locks = home / "locks"
    locks.mkdir(parents=True, exist_ok=True)
    seen = locks.stat()
    return f"{boot_id()}:{seen.st_dev}:{seen.st_ino}{_ELSEWHERE if lanes_elsewhere else ''}"


def of_this_home(seen: str, home: Path) -> bool:
    """Whether a `host_identity` is of this home on this boot, wherever its lanes are."""
    return seen.removesuffix(_ELSEWHERE) == host_identity(home)


def has_lanes_elsewhere(seen: str) -> bool:
    """Whether a `host_identity` is of a run with lanes on other hosts too."""
    return seen.endswith(_ELSEWHERE)
