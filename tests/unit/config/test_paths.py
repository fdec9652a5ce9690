"""Paths of documents: absolute, links as they are written, under the roots."""

from __future__ import annotations

from pathlib import Path

import pytest

from connect_core.config.paths import absolute_path, require_no_ledger
from connect_core.systems.file.patterns import matches


@pytest.fixture
def roots(tmp_path: Path) -> tuple[Path, Path]:
    for name in ("one", "two", "outside"):
        (tmp_path / name).mkdir()
    return tmp_path / "one", tmp_path / "two"


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("a.log", "one/a.log"),
        ("./b/../a.log", "one/a.log"),
        ("logs/*.log", "one/logs/*.log"),
        ("**/*.log", "one/**/*.log"),
        ("../two/a.log", "two/a.log"),
        (".", "one"),
    ],
)
def test_a_relative_path_begins_at_the_first_root(
    text: str, path: str, roots: tuple[Path, ...], tmp_path: Path
) -> None:
    assert absolute_path(text, roots) == str(tmp_path / path)
    assert absolute_path(str(tmp_path / path), roots) == str(tmp_path / path), "twice changes nothing"


@pytest.mark.parametrize("path", ["link/a.log", "current.log", "*/a.log", "link/*.log"])
def test_links_stay_where_they_are_followed_each_time(roots: tuple[Path, ...], tmp_path: Path, path: str) -> None:
    (tmp_path / "two" / "a.log").write_text("")
    (tmp_path / "one" / "link").symlink_to(tmp_path / "two")
    (tmp_path / "one" / "current.log").symlink_to(tmp_path / "two" / "a.log")
    kept = absolute_path(path, roots)
    assert kept == str(tmp_path / "one" / path)
    assert absolute_path(kept, roots) == kept, "twice changes nothing"


def test_a_step_up_behind_a_link_leaves_the_folder_it_leads_to(roots: tuple[Path, ...], tmp_path: Path) -> None:
    (tmp_path / "two" / "sub").mkdir()
    (tmp_path / "one" / "link").symlink_to(tmp_path / "two" / "sub")
    assert absolute_path("link/../a.log", roots) == str(tmp_path / "two" / "a.log")


@pytest.mark.parametrize("text", ["../outside/a", "/etc/passwd", "link/a", "*/b", "../*", "~root/a"])
def test_what_leads_outside_is_refused(text: str, roots: tuple[Path, ...], tmp_path: Path) -> None:
    (tmp_path / "one" / "link").symlink_to(tmp_path / "outside")
    (tmp_path / "outside" / "b").write_text("")
    with pytest.raises(ValueError, match="is outside of the folders that files may be in"):
        absolute_path(text, roots)


def test_a_folder_whose_name_begins_like_a_root_is_outside(roots: tuple[Path, ...], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is outside"):
        absolute_path(str(tmp_path / "one-more" / "a"), roots)


@pytest.mark.parametrize(("text", "words"), [("a*/../../b", r"has \.\. behind a wildcard"), ("a\0b", "NUL")])
def test_tricks_are_refused(text: str, words: str, roots: tuple[Path, ...]) -> None:
    with pytest.raises(ValueError, match=words):
        absolute_path(text, roots)


@pytest.mark.parametrize(
    ("path", "pattern", "met"),
    [
        ("/a/b.log", "/a/*.log", True),
        ("/a/c/b.log", "/a/*.log", False),
        ("/a/c/d/b.log", "/a/**/*.log", True),
        ("/a/b.log", "/a/**/*.log", True),
        ("/a/bxlog", "/a/b.log", False),
        ("/a/b1.log", "/a/b[0-9].l?g", True),
    ],
)
def test_whether_a_pattern_names_a_path(path: str, pattern: str, met: bool) -> None:
    assert matches(path, pattern) is met


def test_an_address_is_no_path(roots: tuple[Path, ...]) -> None:
    """It may hold a password, which would be stored."""
    with pytest.raises(ValueError, match="is an address; name a file"):
        absolute_path("https://user:canary@host/a", roots)


@pytest.mark.parametrize("path", [".waybill/ledger.db", ".waybill/ledger.db-wal", "link", "x/../.waybill/ledger.db"])
def test_the_ledger_is_no_file_of_a_connector(path: str, tmp_path: Path) -> None:
    (tmp_path / ".waybill").mkdir()
    (tmp_path / "x").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / ".waybill" / "ledger.db")
    with pytest.raises(ValueError, match="is of the ledger"):
        require_no_ledger(str(tmp_path / path), tmp_path / ".waybill" / "ledger.db")
    require_no_ledger(str(tmp_path / ".waybill" / "logs" / "x.log"), tmp_path / ".waybill" / "ledger.db")
