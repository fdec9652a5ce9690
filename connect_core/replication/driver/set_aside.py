"""Bytes at the end of a target that no receipt covers are moved to a file beside it: what a run says of them. Pure.

A sink tells of them in the `where` of the first receipt of what it wrote after that, as `set_aside`: pairs of file and
bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from connect_core.work import Receipt


def set_aside(receipts: Iterable[Receipt]) -> list[dict[str, Any]]:
    """`file` and `bytes` of each, in order; ready for JSON."""
    return [{"file": file, "bytes": count} for one in receipts for file, count in one.where.get("set_aside", ())]


def left(receipts: Iterable[Receipt]) -> list[dict[str, Any]]:
    """As `set_aside`, of what stays in a file that was replaced since an attempt wrote to it (`left_in`)."""
    return [{"file": file, "bytes": count} for one in receipts for file, count in one.where.get("left_in", ())]


def left_sentence(left: dict[str, Any]) -> str:
    return (
        f"{left['bytes']:,} bytes that no receipt covers are at the end of {left['file']}, the previous target:"
        " lines of them that were written again are in both files (possible duplicates)"
    )


def sentence(aside: dict[str, Any]) -> str:
    return f"{aside['bytes']:,} bytes that no receipt covers were moved to {aside['file']}"
