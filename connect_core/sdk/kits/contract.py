"""What the methods that authors write must return: a wrong value is told at once, by the name of its method."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence, Sized
from typing import ParamSpec

from connect_core.errors import ContractBroken
from connect_core.sdk.values import Json

_P = ParamSpec("_P")


def method_of(author: object, name: str) -> str:
    """For errors: the class of the author's object and the name of its method."""
    return f"{type(author).__name__}.{name}"


def must_be(kind: type, given: object, what: str) -> None:
    """Raises ContractBroken unless `given` is of this kind. `what` names it: "The answer of Pages.poll"."""
    if not isinstance(given, kind):
        raise broken(f"{what} must be {_a(kind)}, and is {'None' if given is None else _a(type(given))}")


def must_be_json(given: Json, what: str) -> None:
    """Raises ContractBroken unless `given` is a dictionary of what JSON has."""
    must_be(dict, given, what)
    try:
        json.dumps(given, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise broken(f"{what} cannot be stored as JSON ({error})") from None


def must_be_each(kind: type, given: Sequence[object], rows: Sized, what: str) -> None:
    """Raises ContractBroken unless `given` has one value of this kind for each of the rows."""
    must_be(Sequence, given, what)
    if len(given) != len(rows):
        raise broken(f"{what} must have one value for each of {len(rows)} rows, and has {len(given)}")
    if wrong := [one for one in given if not isinstance(one, kind)]:
        must_be(kind, wrong[0], f"Each value of {what[0].lower()}{what[1:]}")


def perform(method: Callable[_P, object], *arguments: _P.args, **named: _P.kwargs) -> None:
    """Calls a method that has nothing to return. Raises ContractBroken when it returns something all the same: False
    says nothing, and of a generator (one stray `yield` makes the method one) nothing has run."""
    if (answer := method(*arguments, **named)) is not None:
        raise broken(
            f"{method_of(getattr(method, '__self__', None), method.__name__)} must return None, and returns"
            f" {_a(type(answer))}: nobody knows what it did. It must raise an error for what it could not do"
        )


def broken(what: str) -> ContractBroken:
    return ContractBroken(what, next_step="The package that brings this system must be corrected")


def _a(kind: type) -> str:
    return f"{'an' if kind.__name__[0] in 'AEIOUaeiou' else 'a'} {kind.__name__}"
