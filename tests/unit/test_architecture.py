"""docs/architecture.md is about the code of today: its drawing, its list of rooms."""

from __future__ import annotations

import re
from pathlib import Path

import connect_core
from tests.pictures.rooms import BOXES, PICTURE, arrows, drawing
from tests.unit.test_rooms import ALLOWED

PAGE = Path(__file__).resolve().parents[2] / "docs" / "architecture.md"


def test_the_drawing_has_the_arrows_that_imports_may_go() -> None:
    """`make docs` draws it anew."""
    assert PICTURE.read_text() == drawing()
    assert f"](pictures/{PICTURE.name})" in PAGE.read_text()


def test_an_arrow_that_follows_from_others_is_left_out() -> None:
    assert arrows({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == {"a": {"b"}, "b": {"c"}, "c": set()}


def test_every_room_is_drawn_and_listed() -> None:
    there = {
        path.stem for path in Path(connect_core.__file__).parent.iterdir() if not path.name.startswith(("_", "py."))
    }
    small = {"errors", "log_lines", "masking", "origin", "clock", "work", "version", "packages"}
    assert set(ALLOWED) | {"sdk"} | small == there
    assert there - BOXES.keys() == small, "they are named in the box of sdk"
    (tree,) = re.findall(r"^connect_core/\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert set(re.findall(r"\b(\w+)(?:/|\.py) ", "\n".join(re.findall(r"^  (\w.*)", tree, re.MULTILINE)))) >= there
