"""How a command asks Airflow's dag-processor on the same machine to parse the DAG file: by the file's time.

A dag-processor parses a file whose time is behind the end of its last parse. A file that is touched while a parse
is under way counts as parsed, though that parse has read the ledger before. So its time is set ahead, beyond the end of
any parse, and the next parse sets it back before it reads the ledger.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

_AHEAD_S = 60.0
"""Longer than a parse takes. Where nobody sets the time back, as in a folder that cannot be written, the file is parsed
until then."""
_LOOK_EVERY_S = 0.1


def ask(file: Path) -> None:
    """For a parse that begins after this. There may be no such file: then nobody parses."""
    ahead = time.time() + _AHEAD_S
    with suppress(OSError):
        os.utime(file, (ahead, ahead))


def begin(file: Path) -> None:
    """Called by a parse before it reads the ledger: what is asked from now on is for the next one."""
    with suppress(OSError):
        if file.stat().st_mtime > time.time():
            os.utime(file)


def has_begun(file: Path, limit_s: float) -> bool:
    """Waits until a parse has begun since the last one asked, so that the one before it has stored what it had read.
    False after the limit: nobody parses, or one parse takes that long. True where there is no file."""
    until = time.monotonic() + limit_s
    with suppress(OSError):
        while file.stat().st_mtime > time.time():
            if time.monotonic() >= until:
                return False
            time.sleep(_LOOK_EVERY_S)
    return True
