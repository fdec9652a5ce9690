"""The README in Chinese says what the README says: the same sections, commands, tables, links and figures."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
HERE = (ROOT / "README.md").read_text()
THERE = (ROOT / "docs" / "README.zh-CN.md").read_text()
_OF_ITS_OWN = "## 术语对照"
"""The last section of the page in Chinese, which the README does not have."""
_BETWEEN_THEM = {"README.md", "docs/README.zh-CN.md"}


class Said(NamedTuple):
    blocks: list[str]
    headings: list[int]
    links: list[str]
    numbers: list[list[str]]
    """Of each row of a table."""


def said(text: str, folder: str) -> Said:
    """What does not depend on the language. Links are seen from the root, without those to the page itself."""
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    targets = re.findall(r"\]\(([^)#]+)(#[^)]*)?\)", prose)
    links = [_from_root(path, folder) + place for path, place in targets]
    rows = [line for line in prose.splitlines() if line.startswith("|")]
    return Said(
        re.findall(r"```.*?```", text, re.DOTALL),
        [len(marks) for marks in re.findall(r"^(#+) ", prose, re.MULTILINE)],
        sorted(link for link in links if link not in _BETWEEN_THEM),
        [re.findall(r"\d+", re.sub(r"\(.*?\)", "", row)) for row in rows],
    )


def _from_root(path: str, folder: str) -> str:
    parts: list[str] = []
    for part in PurePosixPath(folder, path).parts:
        if part == "..":
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts)


def test_both_say_the_same() -> None:
    assert said(THERE.partition(_OF_ITS_OWN)[0], "docs") == said(HERE, "")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("make demo ", "make show "),
        ("517,900 messages", "517,901 messages"),
        ("docs/verify.md", "docs/trace.md"),
        ("## Install", "### Install"),
        ("## Install", "## Install\n\n## More"),
        ("version: 1", "version: 2"),
    ],
)
def test_what_changes_in_one_alone_is_found(old: str, new: str) -> None:
    assert old in HERE
    assert said(THERE.partition(_OF_ITS_OWN)[0], "docs") != said(HERE.replace(old, new), "")
