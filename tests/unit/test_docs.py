"""What the README and the pages in docs name is there: pages, headings, tests, files."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

from tests.guards.patches import is_there

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
_TEST = re.compile(r"\[`(test_\w+)`\]\(([^)#\s]*)\)")
_LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")
_PATH = re.compile(r"`((?:[\w.-]+/)*[\w-]+\.py|(?:\.ci|conf|connect_core|dags|docs|examples|jobs|tests)/[\w./-]*)`")
OF_A_READER = {
    "waybill_spool.py",
    "test_spool.py",
    "waybill_ticks.py",
    "waybill_pairs.py",
    "test_pairs.py",
    "conf/connections/NAME.yaml",
    "conf/engines/NAME.yaml",
    "connect_core/systems/NAME/",
}
"""Files that pages tell a reader to write."""


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    """To a file: the site cannot lead to a folder."""
    broken = []
    for target, anchor in _LINK.findall(page.read_text()):
        if "://" in target:
            continue
        there = page.parent / target if target else page
        if not there.is_file() or (anchor and anchor not in _anchors(there)):
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


def test_every_page_is_in_the_side_bar_of_the_site() -> None:
    """`make site` fails otherwise; its tools are not here."""
    statements = ast.parse((ROOT / "docs" / "conf.py").read_text()).body
    (navigation,) = [
        ast.literal_eval(one.value)
        for one in statements
        if isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == "NAVIGATION"
    ]
    patterns = [f"{one}.md" for captions in navigation.values() for pages in captions.values() for one in pages]
    assert {path for one in patterns for path in ROOT.glob(one)} | {ROOT / "README.md"} == set(PAGES)
    assert [one for one in patterns if not list(ROOT.glob(one))] == []


def test_every_decision_is_in_their_list() -> None:
    decisions = ROOT / "docs" / "decisions"
    listed = re.findall(r"^- \[(.*)\]\((.*)\)$", (decisions / "README.md").read_text(), re.MULTILINE)
    titles = {page.name: page.read_text().splitlines()[0].removeprefix("# ") for page in decisions.glob("*.md")}
    assert sorted(listed) == sorted((title, name) for name, title in titles.items() if name != "README.md")


def test_the_lock_of_the_site_has_what_its_extra_names() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    locked = (ROOT / "docs" / "requirements.lock").read_text().lower().splitlines()
    assert set(extras["docs"]) <= set(locked)
