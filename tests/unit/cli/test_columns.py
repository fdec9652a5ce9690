"""How lists fit a width: which columns leave, how texts are shortened. Nothing is printed here."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from connect_core.cli.columns import GAP, Column, Shown, fitted, in_the_middle, whole

COLUMNS = (Column("NAME"), Column("COUNT", 2), Column("SETTLED", 3), Column("WHY", 2, cut="end"))
ROWS = [["/logs/a-rather-long-name.log", "1,234,567", "2026-11-23 11:32:54Z", "the target is away"]]


def width(shown: Shown) -> int:
    return sum(shown.widths) + GAP * (len(shown.widths) - 1)


def test_what_fits_stays_whole() -> None:
    assert fitted(COLUMNS, ROWS, 200) == whole(COLUMNS, ROWS)
    assert whole(COLUMNS, ROWS).rows == ROWS


@pytest.mark.parametrize(
    ("room", "headings"),
    [
        (70, ("NAME", "COUNT", "SETTLED", "WHY")),
        (50, ("NAME", "COUNT", "WHY")),
        (30, ("NAME", "COUNT")),
        (15, ("NAME",)),
    ],
)
def test_the_least_important_column_on_the_right_leaves_first(room: int, headings: tuple[str, ...]) -> None:
    shown = fitted(COLUMNS, ROWS, room)
    assert shown.headings == headings
    assert width(shown) <= room
    assert {*shown.headings, *shown.left_out} == {column.heading for column in COLUMNS}


@given(
    st.lists(st.tuples(st.text("ab/日-", max_size=40), st.integers(), st.text("xyz", max_size=30)), min_size=1),
    st.integers(12, 120),
)
def test_no_line_is_longer_and_no_number_is_cut(rows: list[tuple[str, int, str]], room: int) -> None:
    texts = [[key or "-", f"{number:,}", word or "-"] for key, number, word in rows]
    shown = fitted((Column("KEY"), Column("N", 2), Column("WORD", 3, cut="end")), texts, room)
    assert width(shown) <= room
    for row in shown.rows:
        assert all(cell_len(text) <= wide for text, wide in zip(row, shown.widths, strict=True))
    if "N" in shown.headings:
        assert [row[1] for row in shown.rows] == [row[1] for row in texts]


def test_both_ends_of_a_path_stay() -> None:
    assert in_the_middle("/var/log/site/machines/worker-1.log", 20) == "/var/l…/worker-1.log"
    assert in_the_middle("日本語の長い名前", 9) == "日…名前"
    assert in_the_middle("short", 20) == "short"


def test_an_id_and_a_time_are_whole_or_not_there() -> None:
    columns = (Column("RUN", cut="never"), Column("AT", 2))
    shown = fitted(columns, [["1m842wca8d6rv-and-more", "2026-11-23 11:32:54+02:00"]], 30)
    assert (shown.rows, shown.left_out) == ([["1m842wca8d6rv-and-more"]], ("AT",))


@pytest.mark.parametrize(
    "keys",
    [
        ["/logs/worker-1-of-the-long-hall.log", "/logs/worker-2-of-the-long-hall.log"],
        ["cluster-a/orders/0", "cluster-b/orders/0"],
        ["/a/b/c/d/e/f/g/1", "/a/b/c/d/e/f/g/2"],
    ],
)
def test_different_keys_look_different(keys: list[str]) -> None:
    shown = fitted((Column("KEY"),), [[key] for key in keys], 13)
    assert len({row[0] for row in shown.rows}) == len(keys)


def test_a_unit_stands_below_its_heading() -> None:
    shown = fitted((Column("READ", unit="records"),), [["1"]], 80)
    assert (shown.headings, shown.widths) == (("READ\n(records)",), (9,))
