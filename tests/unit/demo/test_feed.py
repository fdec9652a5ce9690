"""The feed: numbered lines, spread evenly, whole at the end whatever the pace."""

from __future__ import annotations

import time
from pathlib import Path

from connect_core.demo.feed import Feed, host_of, line


def test_lines_are_numbered_through_over_several_appends(tmp_path: Path) -> None:
    feed = Feed(tmp_path, ["a", "b"])
    feed.append(3)
    feed.append(4)

    numbers = {path.stem: [int(text.split()[2]) for text in path.read_text().splitlines()] for path in feed.files}

    assert numbers == {"a": [0, 1, 2, 3], "b": [0, 1, 2]}
    assert feed.total == 7


def test_a_trickle_leaves_whole_lines_and_counts_them(tmp_path: Path) -> None:
    with Feed(tmp_path, ["a"]) as feed:
        feed.start_trickle(1_000)
        until = time.monotonic() + 5
        while feed.total < 100 and time.monotonic() < until:
            time.sleep(0.01)
    text = (tmp_path / "a.log").read_text()

    assert feed.total == text.count("\n") >= 100
    assert text.endswith("\n")


def test_a_line_names_its_host() -> None:
    assert host_of(line("2026-01-01T00:00:00.000+00:00", "web-1", 7).encode()) == "web-1"
    assert host_of(b"torn") == ""
