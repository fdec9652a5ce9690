"""Digests as receipts have them: 16 hex digits, of lines with a word before them. Texts add up as the digests do."""

from __future__ import annotations

LINES = "lines:"
"""What the text of a digest of lines begins with."""

MASK = (1 << 64) - 1
"""Digests are sums modulo 2^64."""


def format_digest(value: int) -> str:
    return f"{value:016x}"


def add_digests(*texts: str) -> str:
    """The digest of disjoint parts put together."""
    return format_digest(sum(int(text, 16) for text in texts) & MASK)


def added_up(first: str, second: str) -> str | None:
    """The digest of two disjoint parts, of records or of lines; None for digests that cannot be added."""
    kind = LINES if first.startswith(LINES) else ""
    parts = [text.removeprefix(kind) for text in (first, second)]
    if not (first.startswith(kind) and second.startswith(kind)) or any(":" in text or not text for text in parts):
        return None
    return kind + add_digests(*parts)
