"""Where commands work: the installation that this folder or the environment names, or one behind a server.

Both do the same and give the same values, so that each command is written once. `local` calls the use cases, `remote`
the API of a server (docs/command-line-elsewhere.md).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TextIO

from connect_core.errors import ConfigError

if TYPE_CHECKING:
    from connect_core.sdk.plugin import SnapshotWish
    from connect_core.sdk.values import Json
    from connect_core.service.backfill_runs import Request
    from connect_core.service.connectors import Wish
    from connect_core.service.dead_letters import Agree as AgreeOnLetters
    from connect_core.service.dead_letters import Words
    from connect_core.service.documents import Show
    from connect_core.service.letter_replays import Replay
    from connect_core.service.offset_exports import ExportedOffsets
    from connect_core.service.offsets import Agree
    from connect_core.service.opened import Say
    from connect_core.service.rules import RuleChange
    from connect_core.service.run_report import RunListener
    from connect_core.service.runs import How
    from connect_core.service.source_search import SearchWindow
    from connect_core.service.trying import TryRequest

SERVER_VARIABLE = "WAYBILL_SERVER"


@dataclass(frozen=True)
class NamedServer:
    """What the options before a command, or the environment, say of a server; empty where nothing is said."""

    url: str = ""
    token_file: Path | None = None
    ca_file: Path | None = None


class Installation(Protocol):
    """What a command may ask of either. Values and errors are those of the functions of `service`."""

    def status(self, say: Say) -> Json: ...
    def connectors(self, say: Say) -> list[Json]: ...
    def connector(self, name: str, say: Say, *, revisions: bool) -> Json: ...
    def set_state(self, name: str, state: Wish) -> Json: ...
    def delete(self, name: str, *, force: bool, agree: Callable[[str], None], say: Say) -> Json: ...
    def snapshot(self, name: str, wish: SnapshotWish) -> Json: ...
    def cancel_snapshot(self, name: str, tables: Sequence[str]) -> Json: ...

    def runs(self, name: str, *, stream: str, last: int) -> list[Json]: ...
    def receipts(self, name: str, *, run: str, stream: str, last: int) -> list[Json]: ...
    def gaps(self, name: str) -> list[Json]: ...
    def lag(self, name: str) -> list[Json]: ...
    def offsets(self, name: str, *, stream: str) -> list[Json]: ...
    def offset_history(self, name: str, *, partition: str, stream: str, last: int) -> list[Json]: ...
    def traced(self, name: str, window: SearchWindow, **named: str) -> Json: ...
    def set_offset(
        self, name: str, partition: str, offset: int, *, why: str, abandon: bool, agree: Agree, say: Say
    ) -> Json: ...
    def undo_offset(self, name: str, partition: str, *, agree: Agree, say: Say) -> Json: ...
    def exported_offsets(self, name: str, say: Say) -> Json: ...
    def import_offsets(self, name: str, taken: ExportedOffsets, *, why: str, agree: Agree, say: Say) -> Json: ...

    def plan(self, name: str, *, sample: int) -> Json: ...
    def log(self, name: str, run: str) -> Json: ...
    def newest(self, name: str, last: int, *, is_topic: bool, connection: str) -> Json: ...
    def suggested_fields(self, where: str, last: int, *, connection: str) -> Json: ...
    def try_document(self, path: Path, asked: TryRequest) -> Json: ...
    def try_rules(self, name: str, asked: TryRequest) -> Json: ...
    def group(self, name: str, group: str, *, apply: bool) -> Json: ...

    def would_change(self, paths: Sequence[Path], say: Say, *, infer_again: bool) -> list[Json]: ...
    def apply(self, paths: Sequence[Path], *, why: str, say: Say, infer_again: bool, agree: Show) -> list[Json]: ...
    def check(self, paths: Sequence[Path], say: Say, *, probe: bool) -> list[Json]: ...
    def options(self, system: str, key: str) -> list[Json]: ...
    def plugins(self, name: str) -> list[Json]: ...
    def rules(self, name: str) -> list[Json]: ...
    def change_rules(self, name: str, change: RuleChange, *, why: str, dry_run: bool) -> Json: ...

    def run(self, name: str, how: How) -> Json: ...
    def begin_backfill(self, name: str, request: Request, how: How) -> Json: ...
    def resume_backfill(self, name: str, stream: str, how: How) -> Json: ...
    def backfills(self, name: str) -> list[Json]: ...
    def backfill(self, name: str, stream: str) -> Json: ...
    def cancel_backfill(self, name: str, stream: str, *, why: str) -> tuple[Json, bool]: ...
    def verified(
        self,
        name: str,
        *,
        run: str,
        since_s: float | None,
        stream: str,
        share: float,
        listening: Callable[[], AbstractContextManager[RunListener]],
    ) -> Json: ...

    def dead_letters(self, name: str, words: Words, *, last: int) -> list[Json]: ...
    def dead_letter(self, name: str, number: int) -> Json: ...
    def export_letters(self, name: str, words: Words, to: str, out: TextIO) -> int: ...
    def replay_letters(self, name: str, wanted: Replay, agree: AgreeOnLetters, how: How) -> Json: ...
    def discard_letters(self, name: str, words: Words, agree: AgreeOnLetters, *, why: str) -> Json: ...
    def erase_letters(self, name: str, words: Words, agree: AgreeOnLetters, *, why: str) -> Json: ...
    def redirect_letters(self, name: str, agree: AgreeOnLetters, say: Say, *, why: str) -> Json: ...


_named: ContextVar[NamedServer] = ContextVar("named server", default=NamedServer())  # noqa: B039  it is frozen


def name_server(named: NamedServer) -> None:
    """For this command."""
    _named.set(named)


def url_of(given: str | None) -> str:
    """What the option says, or the variable in its place: empty where neither is there. Raises ConfigError for one that
    is there and empty: a script whose address was lost would work on the ledger of this machine."""
    if given is None and os.environ.get(SERVER_VARIABLE) == "":
        given = ""
    if given == "":
        raise ConfigError(
            f"The address of the server is empty (--server or {SERVER_VARIABLE})",
            next_step="Write it as --server https://HOST:8082; for the ledger of this machine leave --server out, and"
            f" take the variable away: unset {SERVER_VARIABLE}",
        )
    return given or ""


def server_named() -> NamedServer:
    """By the options of this command, or the environment."""
    return _named.get()


def installation() -> Installation:
    """Raises ConfigError where the server that is named cannot be called like that."""
    named = server_named()
    if not named.url:
        from connect_core.cli.local import LocalInstallation

        return LocalInstallation()
    from connect_core.remote.client import ServerClient
    from connect_core.remote.installation import RemoteInstallation
    from connect_core.remote.server import server_of

    return RemoteInstallation(ServerClient(server_of(named.url, named.token_file, named.ca_file)))
