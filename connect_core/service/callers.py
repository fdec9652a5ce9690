"""Who calls, and what that caller may do (delivery rule 28).

The server sets the caller of a request here, for as long as the request lasts, and the functions that its routes call
ask here: which way leads to them does not matter. Nobody is set for the command line, for tasks of Airflow, and for a
server without a login: these may do everything.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal, Protocol, get_args

from connect_core.errors import Refused

AccessRole = Literal["viewer", "operator", "admin"]
ROLES: tuple[AccessRole, ...] = get_args(AccessRole)
"""Each may do what those before it may."""


class NotAllowed(Refused):
    """The caller lacks a right: with another token the same call works."""


class Rights(Protocol):
    """What is asked of a caller, whoever has let it in."""

    @property
    def name(self) -> str:
        """What tells it from every other caller, in 100 characters."""

    @property
    def who(self) -> str:
        """As the audit and revisions have it."""

    def sees(self, connector: str) -> bool:
        """Whether it may know of a connector of this name."""

    def may(self, role: AccessRole, connector: str | None) -> bool:
        """Whether it has this role, for the connector of this name; None stands for what is of no connector."""

    def lacking(self, role: AccessRole, connector: str | None) -> NotAllowed:
        """What is said where it may not."""

    def not_named(self, connector: str) -> NotAllowed:
        """What is said where it wants to make a connector that it would not see."""


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

    def may(self, role: AccessRole, connector: str | None) -> bool:
        return ROLES.index(self.role) >= ROLES.index(role)

    def lacking(self, role: AccessRole, connector: str | None) -> NotAllowed:
        return NotAllowed(
            f"Token {self.name} has the role {self.role}, and this needs {role}",
            next_step=f"Ask for a token with this role: waybill tokens create NAME --role {role}",
        )

    def not_named(self, connector: str) -> NotAllowed:
        return NotAllowed(
            f"Token {self.name} is for connectors named {' or '.join(self.connectors)}, and not for {connector!r}",
            next_step="Take a name that fits, or ask for another token: waybill tokens create … --connectors PATTERN",
        )


_caller: ContextVar[Rights | None] = ContextVar("caller", default=None)


@contextmanager
def calling(caller: Rights) -> Iterator[None]:
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


def name() -> str:
    """Of the caller; empty where nobody is set."""
    caller = _caller.get()
    return caller.name if caller else ""


def sees(connector: str) -> bool:
    """Whether the caller may know of a connector of this name. To who may not it is one that is not there."""
    caller = _caller.get()
    return caller is None or caller.sees(connector)


def may(role: AccessRole, connector: str | None = None) -> bool:
    """Whether the caller has this role, for the connector of this name where one is given."""
    caller = _caller.get()
    return caller is None or caller.may(role, connector)


def require(role: AccessRole, connector: str | None = None) -> None:
    """Raises NotAllowed where the caller has a lower role for the connector of this name, whether there is one or not.
    Asked first, so that the answer says nothing of what there is."""
    caller = _caller.get()
    if caller is not None and not caller.may(role, connector):
        raise caller.lacking(role, connector)


def require_name(connector: str) -> None:
    """Raises NotAllowed where the caller may make no connector of this name, whether there is one or not."""
    caller = _caller.get()
    if caller is not None and not caller.sees(connector):
        raise caller.not_named(connector)
