"""What the methods that authors write must return: a wrong value is told at once, by the name of its method."""

from __future__ import annotations

import json
from collections.abc import Sequence, Sized

from connect_core.errors import ContractBroken
from connect_core.sdk.values import Json


def must_be(kind: type, given: object, method: str) -> None:
    """Raises ContractBroken unless `method` has given a value of this kind."""
    if not isinstance(given, kind):
        raise broken(method, f"gave {_named(given)}, and must give {_a(kind)}")


def must_be_json(given: Json, method: str, what: str) -> None:
    """Raises ContractBroken unless `what` of a value that `method` gave is a dictionary of what JSON has."""
    must_be(dict, given, f"{what} of {method}")
    try:
        json.dumps(given, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise broken(method, f"gave a {what} that cannot be stored as JSON ({error})") from None


def must_be_each(kind: type, given: Sequence[object], wanted: Sized, method: str) -> None:
    """Raises ContractBroken unless `method` has given one value of this kind for each of `wanted`."""
    must_be(Sequence, given, method)
    if len(given) != len(wanted):
        raise broken(method, f"gave {len(given)} values for {len(wanted)} rows, and must give one each")
    for one in given:
        must_be(kind, one, f"each value of {method}")


def broken(method: str, what: str) -> ContractBroken:
    """`method` is the class and the name of the author's method."""
    return ContractBroken(f"{method} {what}", next_step="Its package must be corrected: its authors can mend this")


def _named(given: object) -> str:
    return "None" if given is None else _a(type(given))


def _a(kind: type) -> str:
    return f"{'an' if kind.__name__[0] in 'AEIOU' else 'a'} {kind.__name__}"
