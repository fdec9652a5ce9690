"""What a run needs, put together from a ledger, the settings and a home: by the command, a scheduler or a Spark job.

Whoever starts runs comes through here, so that all of them lease, plan and settle alike.
"""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from connect_core.config import (
    Resolved,
    Settings,
    create_home,
    database_url,
    find_home,
    load_document,
    load_settings,
    resolve,
)
from connect_core.errors import ConfigError
from connect_core.ledger import Connector, Ledger
from connect_core.replication.driver.context import RunContext, RunListener
from connect_core.replication.driver.evolved_documents import checked_evolved
from connect_core.replication.driver.leases import LeaseTimes
from connect_core.sdk.values import Json
from connect_core.work import Engine


@contextmanager
def working() -> Iterator[tuple[Ledger, Settings, Path]]:
    """Ledger, settings and home of the working folder and the environment, for whoever takes leases: the home holds
    their lock files, and is made when only the ledger is there."""
    with Ledger.open(database_url(find_home())) as ledger:
        home = create_home()
        yield ledger, load_settings(home), home


def run_context(
    ledger: Ledger,
    settings: Settings,
    home: Path,
    connector: Connector,
    engine: Engine,
    listener: RunListener,
    *,
    attempt_of: str | None = None,
    accept_gaps: bool = False,
    window_s: float | None = None,
) -> RunContext:
    """All that the tasks of one run share. Raises what `resolved` raises.

    `window_s` None: the run of a scheduler (`attempt_of`) has the window of the document, any other one none.
    """
    now = resolved(ledger, settings, home, connector)
    if window_s is None:
        window_s = now.window_s if attempt_of is not None else 0.0
    return RunContext(
        ledger=ledger,
        connector=connector,
        resolved=now,
        resolve=lambda revision, pinned=None: resolved(ledger, settings, home, connector, revision, pinned),
        engine=engine,
        home=home,
        times=times(settings),
        lanes=settings.lanes,
        find_slice_s=settings.find_slice_s,
        holder=holder(),
        listener=listener,
        attempt_of=attempt_of,
        accept_gaps=accept_gaps,
        window_s=window_s,
        check_evolved=lambda old, document, *, register: checked_evolved(
            old, document, home, settings, register=register
        ),
    )


def resolved(
    ledger: Ledger,
    settings: Settings,
    home: Path | None,
    connector: Connector,
    revision: int | None = None,
    pinned: Json | None = None,
) -> Resolved:
    """The connector as a revision of its document has it; the newest when none is given. `pinned` as for `resolve`.
    Raises ConfigError, or Unreachable when the local stack is needed and not running."""
    data = connector.document
    if revision is not None and revision != connector.revision:
        data = ledger.document(connector.uid, revision)
    document = load_document(data, f"connector {connector.name}")
    if document.encode.registry is not None and document.encode.schema_id is None:
        # Else each attempt could write another number (delivery rule 8).
        words = "The schema that it writes with has no number"
        raise ConfigError(words, where=f"connector {connector.name}: encode", next_step="Apply its document again")
    if document.parse.infers:
        # Else each attempt could read with other fields.
        words = "The fields that it infers were not found yet"
        raise ConfigError(words, where=f"connector {connector.name}: parse", next_step="Apply its document again")
    return resolve(document, home, settings, connector.uid, pinned)


def times(settings: Settings) -> LeaseTimes:
    """The shares of a lease, as whoever takes one needs them."""
    return LeaseTimes(settings.lease_ttl_s, settings.lease_margin_s, settings.quantum_s, settings.idle_timeout_s)


def holder() -> str:
    """Who holds a lease, for whoever has to wait for it: host, process, and a nonce."""
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
