"""docs/glossary.md: every word has one meaning, and what commands print is explained there."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import get_args

import pytest

from connect_core.ledger import backfills, partitions
from connect_core.replication.driver import status
from connect_core.work import Receipt

GLOSSARY = (Path(__file__).parents[2] / "docs" / "glossary.md").read_text()

_RUN_STATES = {"running", "done", "failed", "lost"}
_EXPLAINS_ITSELF = {"begin", "end", "bytes_read", "bytes_written", "seconds"}
"""Fields of a receipt with words of everyday."""
_NOT_SHOWN = {"where", "evidence", "floors", "rejects", "gaps"}
"""Of these the glossary has what they are made of: targets, fingerprints, floors, dead letters, gaps."""


def tables() -> dict[str, list[str]]:
    """The words of each table by its heading: the section's, or the head of its first column where that says more."""
    found: dict[str, list[str]] = {}
    section = words = ""
    for line in GLOSSARY.splitlines():
        if line.startswith("## "):
            section = line[3:]
        elif line.startswith("| "):
            first = line.split("|")[1].strip()
            if line.endswith("| meaning |"):
                words = section if first == "word" else first
            else:
                found.setdefault(words, []).extend(re.sub(r" \(.*\)$", "", word) for word in first.split(", "))
    return found


def test_no_word_has_two_meanings() -> None:
    words = [word for name, table in tables().items() if not name.startswith("of a ") for word in table]
    assert sorted({word for word in words if words.count(word) > 1}) == []


@pytest.mark.parametrize(
    ("heading", "states"),
    [
        ("of a connector", set(get_args(status.State))),
        ("of a run", _RUN_STATES),
        ("of a partition", set(get_args(partitions.Name))),
        ("of a backfill", {backfills.RUNNING, backfills.DONE, backfills.FAILED, backfills.CANCELLED}),
    ],
)
def test_every_state_is_explained(heading: str, states: set[str]) -> None:
    assert set(tables()[heading]) == states


def test_every_field_of_a_receipt_is_explained() -> None:
    words = {word for table in tables().values() for word in table}
    fields = {field.name for field in dataclasses.fields(Receipt)} - _EXPLAINS_ITSELF - _NOT_SHOWN
    shown = {re.sub(r"^digest_.*", "digest", name).replace("_", " ") for name in fields}
    assert sorted(shown - words) == []
