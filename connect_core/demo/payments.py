"""Payments of the demo: JSON lines with typed fields, one of which has not its type, and what has to arrive of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

_WRITTEN = """\
{"id": 1, "amount": 12.50, "card": "4000123412341234"}
{"id": 2, "amount": 7, "card": "4000432143214321"}
{"id": 3, "amount": "9,99", "card": "4000111122223333"}
{"id": 4, "amount": 1048576.01, "card": "4000999988887777"}
"""
_ARRIVES = (
    '{"id":1,"amount":12.50,"card":"***"}',
    '{"id":2,"amount":7.00,"card":"***"}',
    '{"id":4,"amount":1048576.01,"card":"***"}',
    '{"id":3,"amount":"9,99","card":"***"}',
)
"""The third one last: it is rejected first."""
PAYMENTS = len(_ARRIVES)


def write(path: Path) -> None:
    path.write_text(_WRITTEN)


def faults(arrived: Sequence[str]) -> list[str]:
    """What is wrong with these bodies, which are all of the topic."""
    return [] if tuple(arrived) == _ARRIVES else [f"payments arrived as {arrived}"]
