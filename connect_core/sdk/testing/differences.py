"""Compares long lists. What pytest says of two that differ takes minutes for thousands of entries where `CI` is set in
the environment: it shows every difference then."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest


def difference(found: Sequence[object], expected: Sequence[object]) -> str:
    """The first entry that differs, and how many there are; empty where none does: `assert not difference(…)`."""
    nothing = object()
    for number, (here, there) in enumerate(zip_longest(found, expected, fillvalue=nothing)):
        if here != there:
            told = "nothing" if here is nothing else repr(here)
            wanted = "nothing" if there is nothing else repr(there)
            return f"number {number} is {told:.200}, not {wanted:.200}; {len(found)} instead of {len(expected)}"
    return ""
