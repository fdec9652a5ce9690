"""What the README and the pages in docs name is there: pages, headings, tests, files."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from tests.guards.patches import is_there

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
_TEST = re.compile(r"\[`(test_\w+)`\]\(([^)#\s]*)\)")
_LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")
_PATH = re.compile(r"`((?:[\w.-]+/)*[\w-]+\.py|(?:\.ci|conf|connect_core|dags|docs|examples|jobs|tests)/[\w./-]*)`")
OF_A_READER = {"waybill_spool.py", "conf/connections/NAME.yaml", "conf/engines/NAME.yaml", "connect_core/systems/NAME/"}
"""Files that pages tell a reader to write."""


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    broken = []
    for target, anchor in _LINK.findall(page.read_text()):
        if "://" in target:
            continue
        there = page.parent / target if target else page
        if not there.exists() or (anchor and anchor not in _anchors(there)):
            broken.append(f"{target}#{anchor}")
    assert broken == []


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_every_test_that_a_page_names_is_there(page: Path) -> None:
    named = [
        f"{(page.parent / file).resolve().relative_to(ROOT)}::{test}" for test, file in _TEST.findall(page.read_text())
    ]
    assert [test for test in named if not is_there(test)] == []


@cache
def _files() -> list[str]:
    """Every file and folder, each with a slash before it, so that a page may name it by the end of its path."""
    folders = [ROOT / name for name in (".ci", "conf", "connect_core", "dags", "docs", "examples", "jobs", "tests")]
    return [f"/{path.relative_to(ROOT)}" for folder in folders for path in (folder, *folder.rglob("*"))]


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name != "CHANGELOG.md"], ids=lambda page: str(page.relative_to(ROOT))
)
def test_every_file_that_a_page_names_is_there(page: Path) -> None:
    named = set(_PATH.findall(page.read_text())) - OF_A_READER
    assert [path for path in named if not any(one.endswith("/" + path.rstrip("/")) for one in _files())] == []


def test_each_row_of_what_a_copy_keeps_names_a_test() -> None:
    rows = [line for line in (ROOT / "docs" / "fidelity.md").read_text().splitlines() if line.startswith("| ")]
    assert len(rows) > 15
    assert [row for row in rows[1:] if not _TEST.search(row)] == []


def _anchors(page: Path) -> set[str]:
    """Of its headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
