"""Who calls, and what that caller may do (delivery rule 28).

The server sets the caller of a request here, for as long as the request lasts, and the functions that its routes call
ask here: which way leads to them does not matter. Nobody is set for the command line, for Airflow, and for a server
without a login: these may do everything.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal, get_args

from connect_core.errors import Refused

AccessRole = Literal["viewer", "operator", "admin"]
ROLES: tuple[AccessRole, ...] = get_args(AccessRole)
"""Each may do what those before it may."""


class NotAllowed(Refused):
    """The caller lacks a right: with another token the same call works."""


@dataclass(frozen=True)
class Caller:
    """Who has shown a token: its name, and what it is for. `connectors` are patterns of names."""

    name: str
    role: AccessRole
    connectors: tuple[str, ...]
    address: str

    @property
    def who(self) -> str:
        """As the audit and revisions have it."""
        return f"token {self.name} from {self.address}"

    def sees(self, connector: str) -> bool:
        return any(fnmatchcase(connector, pattern) for pattern in self.connectors)


_caller: ContextVar[Caller | None] = ContextVar("caller", default=None)


@contextmanager
def calling(caller: Caller) -> Iterator[None]:
    """Everything inside the block is done for this caller."""
    before = _caller.set(caller)
    try:
        yield
    finally:
        _caller.reset(before)


def who() -> str | None:
    """What is written down of the caller; None where nobody is set."""
    caller = _caller.get()
    return caller.who if caller else None


def token_name() -> str:
    """Of the caller; empty where nobody is set."""
    caller = _caller.get()
    return caller.name if caller else ""


def sees(connector: str) -> bool:
    """Whether the caller may know of a connector of this name. To who may not it is one that is not there."""
    caller = _caller.get()
    return caller is None or caller.sees(connector)


def require(role: AccessRole) -> None:
    """Raises NotAllowed where the caller has a lower role. Asked first, so that the answer says nothing of what there
    is."""
    caller = _caller.get()
    if caller is not None and ROLES.index(caller.role) < ROLES.index(role):
        raise NotAllowed(
            f"Token {caller.name} has the role {caller.role}, and this needs {role}",
            next_step=f"Ask for a token with this role: waybill tokens create NAME --role {role}",
        )


def require_name(connector: str) -> None:
    """Raises NotAllowed where the caller may make no connector of this name, whether there is one or not."""
    caller = _caller.get()
    if caller is not None and not caller.sees(connector):
        raise NotAllowed(
            f"Token {caller.name} is for connectors named {' or '.join(caller.connectors)}, and not for {connector!r}",
            next_step="Take a name that fits, or ask for another token: waybill tokens create … --connectors PATTERN",
        )
