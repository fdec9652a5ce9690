"""The comparison of the demo must see every way in which two sides can differ: it is what makes `make demo` fail."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from connect_core.demo.comparison import compare, compare_beginnings
from connect_core.demo.feed import Feed


@pytest.fixture
def sources(tmp_path: Path) -> list[Path]:
    feed = Feed(tmp_path / "logs", ["a", "b"])
    feed.append(20)
    return feed.files


def _lines(sources: list[Path]) -> list[bytes]:
    """The lines of both logs taking turns, as they come out of several queues."""
    logs = [path.read_bytes().splitlines(keepends=True) for path in sources]
    return [text for pair in zip(*logs, strict=True) for text in pair]


def _compare(sources: list[Path], target: Path, lines: list[bytes]) -> tuple[str, ...]:
    target.write_bytes(b"".join(lines))
    seen = compare(sources, target)
    assert (seen.source_sha256 == seen.target_sha256) == (sorted(lines) == sorted(_lines(sources)))
    assert (seen.source_lines, seen.target_lines) == (20, len(lines))
    return seen.faults


def test_interleaved_logs_in_their_own_order_are_equal(tmp_path: Path, sources: list[Path]) -> None:
    assert _compare(sources, tmp_path / "copy", _lines(sources)) == ()


def test_a_missing_line_is_told(tmp_path: Path, sources: list[Path]) -> None:
    (fault,) = _compare(sources, tmp_path / "copy", _lines(sources)[1:])
    assert "a.log: 1 lines are missing, 0 repeated, 9 of 10" in fault


def test_a_repeated_line_is_told(tmp_path: Path, sources: list[Path]) -> None:
    lines = _lines(sources)
    (fault,) = _compare(sources, tmp_path / "copy", [*lines, lines[1]])
    assert "b.log: 0 lines are missing, 1 repeated, 11 of 10" in fault


def test_swapped_lines_of_one_log_are_told(tmp_path: Path, sources: list[Path]) -> None:
    lines = _lines(sources)
    lines[4], lines[6] = lines[6], lines[4]
    (fault,) = _compare(sources, tmp_path / "copy", lines)
    assert fault == "a.log: order or content differs from line 2 on"


def test_a_foreign_line_is_told(tmp_path: Path, sources: list[Path]) -> None:
    (fault,) = _compare(sources, tmp_path / "copy", [*_lines(sources), b"2026 c 000000001 GET /\n"])
    assert fault == "1 lines are of no log ('c')"


def test_a_file_of_beginnings_has_the_first_lines_of_each_log(sources: list[Path], tmp_path: Path) -> None:
    target = tmp_path / "half.log"
    target.write_bytes(b"".join(_lines(sources)[:7]))
    seen = compare_beginnings(sources, target)
    assert (seen.lines, seen.faults) == (7, ())


@pytest.mark.parametrize(
    "spoilt", [lambda lines: lines[1:], lambda lines: [*lines, lines[0]], lambda lines: lines[::-1]]
)
def test_what_is_no_beginning_is_told(
    sources: list[Path], tmp_path: Path, spoilt: Callable[[list[bytes]], list[bytes]]
) -> None:
    target = tmp_path / "half.log"
    target.write_bytes(b"".join(spoilt(_lines(sources)[:8])))
    assert compare_beginnings(sources, target).faults


def test_lines_of_no_log_are_told(sources: list[Path], tmp_path: Path) -> None:
    target = tmp_path / "half.log"
    target.write_bytes(b"".join(_lines(sources)[:8]) + b"2026 c 1 what\n")
    assert compare_beginnings(sources, target).faults == ("half.log: 1 lines are of no log ('c')",)
