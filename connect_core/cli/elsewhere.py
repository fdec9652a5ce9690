"""Which commands work for a server, and why the others do not: decided before a command begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from typer.core import TyperGroup

from connect_core.errors import ConfigError

WORKING = frozenset(
    {
        *("status", "apply", "check", "options", "plugins", "run", "runs", "receipts", "lag", "gaps", "verify"),
        *("snapshot", "backfill", "replay", "trace", "plan", "logs", "peek", "fields", "try", "groups translate"),
        *(f"connectors {verb}" for verb in ("list", "show", "pause", "resume", "restart", "stop", "delete")),
        *(f"offsets {verb}" for verb in ("show", "history", "set", "undo", "export", "import")),
        *(f"backfills {verb}" for verb in ("list", "show", "resume", "cancel")),
        *(f"rules {verb}" for verb in ("list", "add", "set", "enable", "disable", "delete", "try")),
        *(f"dead-letters {verb}" for verb in ("list", "show", "export", "replay", "redirect", "discard", "erase")),
    }
)
"""`rmqconnect` does as well: each command of it calls a server."""
_CALLS_A_SERVER = "rmqconnect"

_OF_A_HOST = "It is about the machine that it runs on"
REFUSED: Mapping[str, str] = {
    **dict.fromkeys(("serve", "doctor", "dev", "engine", "db"), _OF_A_HOST),
    "import": "It asks the server of a peer, and writes what it finds there into the ledger of this machine",
    "init": "It asks nobody: the document that it prints is the same everywhere",
    "tokens": "A token makes no other token",
}
"""By command, or by group for all of it."""


def require_known_elsewhere(root: TyperGroup, context: Any, words: Sequence[str]) -> None:
    """Raises ConfigError for a command that works here alone. `words` are what is typed behind the options of the root;
    help is always given."""
    named = _named(root, context, words)
    if not named or {"--help", "-h"} & set(words) or named in WORKING or named.split()[0] == _CALLS_A_SERVER:
        return
    raise ConfigError(
        f"`waybill {named}` does not work for another host. {REFUSED[named.split()[0]]}",
        next_step="Give it on the host of the server, without --server and WAYBILL_SERVER",
    )


def _named(root: TyperGroup, context: Any, words: Sequence[str]) -> str:
    """The command by its path; empty for a group without one, and for what is none."""
    typed = [word for word in words if not word.startswith("-")]
    found = root.get_command(context, typed[0]) if typed else None
    if not isinstance(found, TyperGroup):
        return typed[0] if found else ""
    inner = found.get_command(context, typed[1]) if len(typed) > 1 else None
    return " ".join(typed[:2]) if inner else ""
