"""How a list fits a terminal: which columns stay, how wide each one is, and what a shortened value looks like. Pure.

Called by `output.table`; widths are terminal cells. A number or a time is never shortened: its column is shown whole or
not at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from rich.cells import cell_len

GAP = 2
"""Between two columns."""

Cut = Literal["middle", "end", "words", "never"]
_WHOLE = re.compile(r"-|-?[\d,]+(\.\d+)?|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\S*|yes|no")
_NUMBER = re.compile(r"-|-?[\d,]+(\.\d+)?")
_ELLIPSIS = "…"
_SHARES_OF_THE_TAIL = (0.67, 0.5, 0.85, 0.33)
"""Tried in turn until different values look different: the end of a path or key usually tells most."""


@dataclass(frozen=True)
class Column:
    """One column of a list. A `priority` of 1 stays longest; of the others the largest leaves first, and of equal ones
    the one on the right. `cut` is how a text that is too long is shortened: in the middle (paths, keys), at its end
    (sentences), not at all (ids), or as words that go on below (texts that must be read whole); `least` is the
    narrowest that its texts may get. `unit` stands below the heading."""

    heading: str
    priority: int = 1
    unit: str = ""
    cut: Cut = "middle"
    least: int = 12


@dataclass(frozen=True)
class Shown:
    """A list as it fits: by column that stays its heading (two lines with a unit), width, whether it holds words that
    go on below and whether it is numbers; the rows; and the headings of what was left out and of what was shortened."""

    headings: tuple[str, ...]
    widths: tuple[int, ...]
    wraps: tuple[bool, ...]
    numeric: tuple[bool, ...]
    rows: list[list[str]]
    left_out: tuple[str, ...]
    shortened: tuple[str, ...]


def whole(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> Shown:
    """Every column in full width, a row a line."""
    measured = [_Measured.of(index, column, rows) for index, column in enumerate(columns)]
    return _shown(measured, [one.natural for one in measured], rows, ())


def fitted(columns: Sequence[Column], rows: Sequence[Sequence[str]], room: int) -> Shown:
    """No line wider than `room`, as long as one column alone is not."""
    measured = [_Measured.of(index, column, rows) for index, column in enumerate(columns)]
    kept = list(measured)
    while len(kept) > 1 and _width(one.least for one in kept) > room:
        kept.remove(max(kept, key=lambda one: (one.column.priority, one.index)))
    left_out = tuple(one.column.heading for one in measured if one not in kept)
    return _shown(kept, _widths(kept, room), rows, left_out)


@dataclass(frozen=True)
class _Measured:
    """A column with what it needs: `least` equals `natural` where nothing may be shortened."""

    index: int
    column: Column
    heading: str
    natural: int
    least: int
    numeric: bool

    @classmethod
    def of(cls, index: int, column: Column, rows: Sequence[Sequence[str]]) -> _Measured:
        texts = [row[index] for row in rows]
        heading = f"{column.heading}\n({column.unit})" if column.unit else column.heading
        headed = max(cell_len(line) for line in heading.split("\n"))
        natural = max(headed, *(cell_len(text) for text in texts))
        fixed = column.cut == "never" or all(_WHOLE.fullmatch(text) for text in texts)
        least = natural if fixed else min(natural, max(headed, column.least))
        return cls(index, column, heading, natural, least, all(_NUMBER.fullmatch(text) for text in texts))


def _widths(kept: Sequence[_Measured], room: int) -> list[int]:
    """The least of each, and what is left of the room in equal parts to those that want more."""
    widths = [one.least for one in kept]
    while (left := room - _width(widths)) > 0:
        hungry = [place for place, one in enumerate(kept) if widths[place] < one.natural]
        if not hungry:
            break
        for place in hungry[:left]:
            widths[place] += min(max(left // len(hungry), 1), kept[place].natural - widths[place])
    return widths


def _width(widths: Iterable[int]) -> int:
    listed = list(widths)
    return sum(listed) + GAP * (len(listed) - 1)


def _shown(
    kept: Sequence[_Measured], widths: Sequence[int], rows: Sequence[Sequence[str]], left_out: tuple[str, ...]
) -> Shown:
    texts, shortened = [], []
    for one, width in zip(kept, widths, strict=True):
        before = [row[one.index] for row in rows]
        after = before if one.column.cut == "words" else _cut(before, width, one.column.cut)
        texts.append(after)
        if after != before:
            shortened.append(one.column.heading)
    return Shown(
        tuple(one.heading for one in kept),
        tuple(widths),
        tuple(one.column.cut == "words" for one in kept),
        tuple(one.numeric for one in kept),
        [list(row) for row in zip(*texts, strict=True)],
        left_out,
        tuple(shortened),
    )


def _cut(texts: list[str], width: int, cut: Cut) -> list[str]:
    if cut == "end":
        return [_at_the_end(text, width) for text in texts]
    tried = [[in_the_middle(text, width, share) for text in texts] for share in _SHARES_OF_THE_TAIL]
    tried.append(_from_the_difference(texts, width))
    return next((one for one in tried if len(set(one)) == len(set(texts))), tried[0])


def _from_the_difference(texts: list[str], width: int) -> list[str]:
    """Without what all of them begin with."""
    low, high = min(texts), max(texts)
    same = next((at for at, (one, other) in enumerate(zip(low, high, strict=False)) if one != other), len(low))
    return [in_the_middle(_ELLIPSIS + text[same:], width) for text in texts]


def in_the_middle(text: str, width: int, share_of_the_tail: float = _SHARES_OF_THE_TAIL[0]) -> str:
    """`text` in at most `width` cells: its two ends with … between them."""
    if cell_len(text) <= width:
        return text
    tail = round((width - 1) * share_of_the_tail)
    return _begin(text, width - 1 - tail) + _ELLIPSIS + _begin(text[::-1], tail)[::-1]


def _at_the_end(text: str, width: int) -> str:
    return text if cell_len(text) <= width else _begin(text, width - 1).rstrip() + _ELLIPSIS


def _begin(text: str, width: int) -> str:
    """As many characters as `width` cells hold."""
    used = 0
    for index, character in enumerate(text):
        used += cell_len(character)
        if used > width:
            return text[:index]
    return text
