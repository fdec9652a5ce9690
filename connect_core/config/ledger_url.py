"""Which database holds the ledger of a home. It may hold a password: `shown` is what people see."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from connect_core.errors import Unreachable

VARIABLE = "WAYBILL_DATABASE_URL"
SQLITE_FILE = "ledger.db"


def database_url(home: Path | None, environ: Mapping[str, str] = os.environ) -> str:
    """WAYBILL_DATABASE_URL, else the database of the home's stack, else a SQLite file of the home.

    A home that ever had a stack with a database keeps its ledger there: while it is stopped this raises Unreachable,
    it does not begin another ledger beside it.
    """
    if given := environ.get(VARIABLE):
        return given
    if home is None:
        raise Unreachable(
            "There is no home (.waybill) here, so there is no ledger",
            where=str(Path.cwd()),
            next_step=f"Create one with `waybill apply` or `waybill dev up`, or name it with WAYBILL_HOME, {VARIABLE}",
        )
    from connect_core import stack

    running = stack.load(home)
    if running is not None and stack.POSTGRESQL in running.parts:
        return running.database_url
    if had_a_server(home):
        raise Unreachable(
            "The ledger is in the local stack's database, which is not running",
            where=str(home),
            next_step="Start it with `waybill dev up`",
        )
    return sqlite_url(home)


def sqlite_url(home: Path) -> str:
    """The ledger of a home that has no other."""
    return f"sqlite:///{home / SQLITE_FILE}"


def had_a_server(home: Path) -> bool:
    """Whether a database server was ever started for this home: it left a log."""
    from connect_core.stack import POSTGRESQL

    return (home / "logs" / f"{POSTGRESQL}.log").exists()


def shown(url: str) -> str:
    """The URL without its password, for people."""
    without = re.sub(r"(password=)[^&]*", r"\1***", url)
    return re.sub(r"(://[^:/@]*):.*@", r"\1:***@", without)
