"""What use cases work on: the home, the settings and the ledger, opened by an edge and given to each function.

Reading never creates anything. `storing` is for what may begin a home and a ledger, `working` for what takes leases.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from connect_core.service import callers
from connect_core.service.kept_ledgers import LedgerPlace, kept_ledgers

if TYPE_CHECKING:
    from connect_core.config import Resolved, Settings
    from connect_core.ledger import Connector, Ledger


Say = Callable[[str], None]
"""Whoever is told, while something is done, what a person should know of it."""


@dataclass(frozen=True)
class Opened:
    """`home` is None when there is none and nothing needs one."""

    home: Path | None
    settings: Settings
    ledger: Ledger

    def resolved(self, connector: Connector) -> Resolved:
        """The connector as the newest revision of its document has it."""
        from connect_core.replication.driver.prepare import resolved

        return resolved(self.ledger, self.settings, self.home, connector)


@dataclass(frozen=True)
class AtWork(Opened):
    """For what takes leases: `home` holds their lock files."""

    home: Path


def surroundings() -> tuple[Path | None, Settings]:
    """Home and settings of what needs no ledger."""
    from connect_core.config import find_home, load_settings

    home = find_home()
    return home, _in_its_name(load_settings(home))


def ledger_exists() -> bool:
    """False when a ledger would have to be made first. Raises Unreachable when the one there is cannot be reached."""
    from connect_core.config import database_url, find_home, sqlite_url
    from connect_core.config.ledger_url import VARIABLE
    from connect_core.ledger import is_made

    kept = kept_ledgers()
    if kept is not None and kept.read_just_now():
        return True
    home = find_home()
    if home is None:
        return VARIABLE in os.environ
    database_url(home)
    if VARIABLE in os.environ or (home / "stack.json").exists():
        return True
    url = sqlite_url(home)
    return (kept is not None and kept.knows(url)) or is_made(url)  # it may be in the making


@contextmanager
def reading() -> Iterator[Opened]:
    """For what needs a ledger that is there. Raises Unreachable or ConfigError when there is none."""
    from connect_core.ledger import Ledger

    if (kept := kept_ledgers()) is not None:
        place = kept.place(_place)
        yield Opened(place.home, _in_its_name(place.settings), kept.at(place.url))
        return
    place = _place()
    with Ledger.open(place.url) as ledger:
        yield Opened(place.home, _in_its_name(place.settings), ledger)


def _place() -> LedgerPlace:
    from connect_core.config import database_url, find_home, load_settings

    home = find_home()
    return LedgerPlace(home, load_settings(home), database_url(home))


def require_an_answer() -> None:
    """Raises Unreachable where there is a ledger that does not answer."""
    if ledger_exists():
        with reading():
            pass


@contextmanager
def storing() -> Iterator[Opened]:
    """For applying documents: makes the home and its SQLite ledger when they are missing; `ledgers.upgrade` makes any
    other."""
    from connect_core.config import create_home, database_url, load_settings, sqlite_url
    from connect_core.ledger import Ledger, is_made, upgrade

    home = create_home()
    url = database_url(home)
    if url == sqlite_url(home) and not is_made(url):  # another process may be about to make it: then this one waits
        upgrade(url)
    with Ledger.open(url) as ledger:
        yield Opened(home, _in_its_name(load_settings(home)), ledger)


@contextmanager
def working() -> Iterator[AtWork]:
    """For what takes leases: the home is made when only the ledger is there."""
    from connect_core.replication.driver.prepare import working as at_work

    with at_work() as (ledger, settings, home):
        yield AtWork(home, _in_its_name(settings), ledger)


def _in_its_name(settings: Settings) -> Settings:
    """What the caller of a server changes is changed by that caller, and not by whoever has started the server."""
    who = callers.who()
    return settings.model_copy(update={"user": who}) if who else settings
