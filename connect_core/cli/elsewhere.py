"""Which commands work for a server, and why the others do not: decided before a command begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from typer.core import TyperGroup

from connect_core.errors import ConfigError

WORKING = frozenset(
    {
        *(
            "status",
            "apply",
            "check",
            "options",
            "plugins",
            "run",
            "runs",
            "receipts",
            "lag",
            "gaps",
            "verify",
            "snapshot",
        ),
        *("backfill", "replay", "trace", "offsets show", "offsets history", "offsets set"),
        *(f"connectors {verb}" for verb in ("list", "show", "pause", "resume", "restart", "stop", "delete")),
        *(f"rules {verb}" for verb in ("list", "add", "set", "enable", "disable", "delete")),
        *(f"dead-letters {verb}" for verb in ("list", "show", "replay")),
    }
)
"""`rmqconnect` does as well: each command of it calls a server."""
_CALLS_A_SERVER = "rmqconnect"

_OF_A_HOST = "It is about the machine that it runs on"
_NO_REQUEST = "Its server has no such request yet"
_BY_REQUEST = "Its server has a request for it (docs/rest.md), which this command does not make yet"
_TOKENS = "A token makes no other token"
REFUSED: Mapping[str, str] = {
    **dict.fromkeys(("serve", "doctor", "logs", "dev", "engine", "db", "import"), _OF_A_HOST),
    "init": "It asks nobody: the document that it prints is the same everywhere",
    "tokens": _TOKENS,
    **dict.fromkeys(("plan", "peek", "fields", "try", "groups", "rules try"), _NO_REQUEST),
    **dict.fromkeys(("backfills", *(f"offsets {verb}" for verb in ("undo", "export", "import"))), _BY_REQUEST),
    **dict.fromkeys((f"dead-letters {verb}" for verb in ("export", "redirect", "discard", "erase")), _BY_REQUEST),
}
"""By command, or by group for all of it."""


def require_known_elsewhere(root: TyperGroup, context: Any, words: Sequence[str]) -> None:
    """Raises ConfigError for a command that works here alone. `words` are what is typed behind the options of the root;
    help is always given."""
    named = _named(root, context, words)
    if not named or {"--help", "-h"} & set(words) or named in WORKING or named.split()[0] == _CALLS_A_SERVER:
        return
    why = REFUSED.get(named) or REFUSED.get(named.split()[0], _NO_REQUEST)
    raise ConfigError(
        f"`waybill {named}` does not work for another host. {why}",
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
