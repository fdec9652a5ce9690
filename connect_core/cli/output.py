"""How commands show what they found: one JSON document on stdout with --json, else text and tables for people.

Progress and notices go to stderr, so that stdout holds the result and nothing else.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer


def _remember(ctx: typer.Context, value: bool) -> bool:
    if value:
        ctx.find_root().meta["json"] = True
    return value


JsonFlag = Annotated[
    bool, typer.Option("--json", help="One JSON document on stdout, for scripts.", callback=_remember, is_eager=True)
]
"""Every command takes it. Eager, so that an error in another option is told as JSON too."""


def emit(as_json: bool, result: Any, for_people: Callable[[], None]) -> None:
    """`result` as JSON, or what `for_people` prints."""
    if as_json:
        sys.stdout.write(json.dumps(result, default=plain, ensure_ascii=False, indent=2) + "\n")
    else:
        for_people()


def plain(value: Any) -> Any:
    """What JSON has no form for: times in ISO 8601, dataclasses as objects, bytes as text where they are text."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, (bytes, bytearray)):
        return shown_bytes(bytes(value))
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (set, frozenset, tuple)):
        return sorted(value) if isinstance(value, (set, frozenset)) else list(value)
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def table(headings: Sequence[str], rows: Iterable[Sequence[Any]], empty: str = "none") -> None:
    """A table without lines; numbers to the right. Never cut off where the output is not a terminal."""
    listed = [[cell(value) for value in row] for row in rows]
    if not listed:
        line(empty)
        return
    from rich import box
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=box.SIMPLE_HEAD if sys.stdout.isatty() else None, pad_edge=False, show_edge=False)
    for index, heading in enumerate(headings):
        numeric = all(row[index].replace(",", "").lstrip("-").isdecimal() or row[index] == "-" for row in listed)
        shown.add_column(heading, justify="right" if numeric else "left", overflow="fold")
    for row in listed:
        shown.add_row(*(Text(value) for value in row))
    _console().print(shown)


def fields(pairs: Iterable[tuple[str, Any]]) -> None:
    """`name  value` lines."""
    known = [(name, cell(value)) for name, value in pairs]
    width = max(len(name) for name, _ in known)
    for name, value in known:
        line(f"{name:<{width}}  {value}")


def line(text: str = "") -> None:
    sys.stdout.write(f"{printable(text)}\n")


def notice(text: str) -> None:
    """On stderr, at once."""
    sys.stderr.write(f"{printable(text)}\n")
    sys.stderr.flush()


def cell(value: Any) -> str:
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, datetime):
        return value.astimezone().strftime("%Y-%m-%d %H:%M:%S")
    if isinstance(value, (bytes, bytearray)):
        return shown_bytes(bytes(value))
    return printable(str(value))


def count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def printable(text: str) -> str:
    """Control characters spelled out: names and payloads must not be able to drive the terminal."""
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def shown_bytes(value: bytes) -> str:
    """Bytes as text; those that are no UTF-8 as \\xNN."""
    return value.decode("utf-8", errors="backslashreplace")


def _console() -> Any:
    from rich.console import Console

    return Console(file=sys.stdout, width=None if sys.stdout.isatty() else 10_000, highlight=False, soft_wrap=False)
