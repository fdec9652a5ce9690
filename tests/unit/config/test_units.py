"""Durations and sizes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_core.config.units import parse_bytes, parse_seconds, show_bytes, show_seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30s", 30), ("5m", 300), ("500ms", 0.5), ("1.5h", 5400), ("2d", 172800), (7, 7), (0.25, 0.25), ("12", 12)],
)
def test_a_duration_is_seconds(text: object, seconds: float) -> None:
    assert parse_seconds(text) == seconds


@pytest.mark.parametrize(
    ("text", "size"), [("1GiB", 2**30), ("64 KB", 64000), (5, 5), ("0.5KiB", 512), ("10MB", 10**7), ("3B", 3)]
)
def test_a_size_is_bytes(text: object, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["30x", "", "s", "-1s", "1 0s", "1h30m", True, None, [], float("nan"), "１s", "1S"])
def test_what_is_no_duration_is_told(text: object) -> None:
    with pytest.raises(ValueError, match="is not a duration: write a number of seconds"):
        parse_seconds(text)


@pytest.mark.parametrize("text", ["1gib", "1G", "GiB", -5, "1e9", {}])
def test_what_is_no_size_is_told(text: object) -> None:
    with pytest.raises(ValueError, match="is not a size: write a number of bytes"):
        parse_bytes(text)


@given(st.integers(1, 10**7))
def test_a_shown_duration_reads_back(seconds: int) -> None:
    assert parse_seconds(show_seconds(seconds)) == pytest.approx(seconds, rel=1e-5)


@pytest.mark.parametrize(("size", "text"), [(2**30, "1GiB"), (1536, "1.5KiB"), (12, "12B"), (0, "0B")])
def test_a_size_is_shown_short(size: int, text: str) -> None:
    assert show_bytes(size) == text
