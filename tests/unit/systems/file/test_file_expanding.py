"""What a pattern matches is what `glob` says, but for links that lead back."""

from __future__ import annotations

import glob
import itertools
import os
from pathlib import Path

import pytest

from connect_core.systems.expanding import expanded


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Folders, hidden ones and odd names, and a link to a folder outside of it."""
    for path in ("x.log", "a/x.log", "a/b/y.log", "a/.h/z.log", "[c]/x.log", "a/b/c-d/.z.log", "a/b/c-d/x.txt"):
        (tmp_path / "tree" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tree" / path).touch()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "o.log").touch()
    (tmp_path / "tree" / "a" / "link").symlink_to(tmp_path / "outside")
    return tmp_path / "tree"


def files(paths: list[str]) -> list[str]:
    return sorted({path for path in paths if os.path.isfile(path)})


@pytest.mark.parametrize(
    "pattern",
    ["*.log", "**/*.log", "**", "a/**/x*", "**/b/**/*.txt", "**/**/y*", "**/link/*.log", "*/**", "**/.h/*.log", "n/**"],
)
def test_it_is_what_glob_says(tree: Path, monkeypatch: pytest.MonkeyPatch, pattern: str) -> None:
    whole = f"{tree}/{pattern}"
    assert files(expanded(whole)) == files(glob.glob(whole, recursive=True))
    monkeypatch.chdir(tree)
    assert files(expanded(pattern)) == files(glob.glob(pattern, recursive=True))


def test_links_that_lead_back_come_to_an_end(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And a file has the name that needs no link, else the first of those with links."""
    before = {*map(os.path.realpath, files(expanded(f"{tree}/**/*.log")))}
    for name in ("0", "zz"):
        (tree / name).symlink_to(".")
        (tree / "a" / name).symlink_to(tree)
        (tree / "a" / f"{name}-link").symlink_to(tree.with_name("outside"))
    (tree / "a" / "itself").symlink_to("itself")
    listed, listing = itertools.count(), os.scandir

    def counted(folder: str) -> object:
        assert next(listed) < 100, "it enters them again and again"
        return listing(folder)

    monkeypatch.setattr(os, "scandir", counted)
    found = files(expanded(f"{tree}/**/*.log"))
    assert {*map(os.path.realpath, found)} == before
    assert [path for path in found if path != os.path.realpath(path)] == [f"{tree}/a/0-link/o.log"]
