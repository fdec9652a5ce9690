"""The `waybill` command: Typer for the words, Rich for people, --json for scripts. An edge: it asks the other rooms,
shows what they say, and decides nothing itself.

Exit codes: 0 done; 1 failed, trying again may help; 2 usage or configuration; 3 something it needs is not there or not
reachable; 4 somebody else holds the lease; 5 the data is wrong; 6 failed for good.
"""

from __future__ import annotations


def main() -> None:
    """The console entry point."""
    from connect_core.cli.app import app

    app()
