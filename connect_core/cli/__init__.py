"""The `waybill` command: Typer for the words, Rich for people, --json for scripts. An edge: it asks the other rooms,
shows what they say, and decides nothing itself.

Exit codes: 0 done; 1 failed, another try may help; 2 usage or configuration; 3 something it needs is missing or
unreachable; 4 another run or command holds the lease; 5 the data is wrong; 6 failed permanently.
"""

from __future__ import annotations


def main() -> None:
    """The console entry point."""
    from connect_core.cli.app import app

    app()
