"""How a person names streams: `live`, a backfill or replay as `backfills list` names it, or all of them."""

from __future__ import annotations

ALL = "all"


def of_stream(word: str) -> str | None:
    """None stands for every stream."""
    return None if word == ALL else word
