"""The `waybill` command: Typer for the words, Rich for people, --json for scripts. An edge: it asks the other rooms,
shows what they say, and decides nothing itself.

Exit codes: 0 done; 1 failed, another try may help; 2 usage or configuration; 3 something it needs is missing or
unreachable; 4 another run or command holds the lease; 5 the data is wrong; 6 failed permanently.
"""

from __future__ import annotations

import atexit
import gc


def main() -> None:
    """The console entry point."""
    # What a command loads it keeps until it ends: to look for garbage in it is a fifth of a short command's time.
    gc.set_threshold(100_000)
    atexit.register(gc.freeze)
    from connect_core.cli.app import app

    app()
