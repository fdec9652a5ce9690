"""How commands show what they found: one JSON document on stdout with --json, else text and lists for people.

Progress and notices go to stderr, so that stdout holds the result and nothing else.
"""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from connect_core import log_lines
from connect_core.service.json_values import plain, shown_bytes

if TYPE_CHECKING:
    from connect_core.cli.columns import Column, Shown
    from connect_core.sdk.values import Json

__all__ = [
    "JsonFlag",
    "WideFlag",
    "cell",
    "count",
    "emit",
    "fields",
    "line",
    "newest",
    "notice",
    "printable",
    "shown_bytes",
    "table",
]


def _remember(ctx: typer.Context, value: bool) -> bool:
    if value:
        ctx.find_root().meta["json"] = True
    return value


JsonFlag = Annotated[
    bool, typer.Option("--json", help="One JSON document on stdout, for scripts.", callback=_remember, is_eager=True)
]
"""Every command takes it. Eager, so that an error in another option is told as JSON too."""

WideFlag = Annotated[bool, typer.Option("--wide", help="Show every column in full, however wide the terminal is.")]
"""Every command that shows a list takes it."""


def emit(as_json: bool, result: Any, for_people: Callable[[], None]) -> None:
    """`result` as JSON, or what `for_people` prints."""
    if as_json:
        sys.stdout.write(json.dumps(result, default=plain, ensure_ascii=False, indent=2) + "\n")
    else:
        for_people()


def table(
    columns: Sequence[Column | str], rows: Iterable[Sequence[Any]], empty: str = "none", *, wide: bool = False
) -> None:
    """A list, one line a row. On a terminal it is as wide as that at most: columns of little importance are left out,
    long texts are shortened, and a last line says so. With `wide`, and where the output is no terminal, everything is
    shown. A heading alone is a column of the first importance."""
    listed = [[cell(value).replace("\n", " ") for value in row] for row in rows]
    if not listed:
        line(empty)
        return
    from connect_core.cli.columns import Column, fitted, whole

    known = [Column(column) if isinstance(column, str) else column for column in columns]
    room = None if wide or not sys.stdout.isatty() else shutil.get_terminal_size().columns
    shown = whole(known, listed) if room is None else fitted(known, listed, room)
    _print(shown, room)
    if room and (shown.left_out or shown.shortened):
        said = [f"{what}: {', '.join(which)}." for what, which in _missing(shown) if which]
        hint = " ".join([*said, "--wide and --json show everything."])
        line("\n".join(textwrap.wrap(hint, room, break_on_hyphens=False)))


def _missing(shown: Shown) -> Iterator[tuple[str, tuple[str, ...]]]:
    yield "Not shown", shown.left_out
    yield "Shortened", shown.shortened


def _print(shown: Shown, room: int | None) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from connect_core.cli.columns import GAP

    edge = box.SIMPLE_HEAD if sys.stdout.isatty() else None
    between = GAP - 1 if edge else GAP  # this box draws a blank between two columns
    lines = Table(box=edge, pad_edge=False, show_edge=False, padding=(0, between, 0, 0))
    for heading, width, wraps, numeric in zip(shown.headings, shown.widths, shown.wraps, shown.numeric, strict=True):
        lines.add_column(
            heading, width=width, no_wrap=not wraps, overflow="fold", justify="right" if numeric else "left"
        )
    for row in shown.rows:
        lines.add_row(*(Text(value) for value in row))
    needed = sum(shown.widths) + (GAP + 1) * len(shown.widths)
    Console(file=sys.stdout, width=max(room or 0, needed), highlight=False, soft_wrap=False).print(lines)


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
    sys.stderr.write(f"{log_lines.line(printable(text))}\n")
    sys.stderr.flush()


def newest(found: Sequence[Json], last: int) -> Sequence[Json]:
    """The first `last` of `found`, of which one more was asked for: where there are more, a line on stderr says so."""
    if len(found) > last:
        notice(f"Older ones are not shown: --last is {last:,}")
    return found[:last]


def cell(value: Any) -> str:
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, datetime):
        return value.astimezone().isoformat(" ", "seconds").replace("+00:00", "Z")
    if isinstance(value, (bytes, bytearray)):
        return shown_bytes(bytes(value))
    return printable(str(value))


def count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def printable(text: str) -> str:
    """Control characters spelled out: names and payloads must not be able to drive the terminal."""
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)
