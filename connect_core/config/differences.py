"""What a new revision of a document changes, in lines a person reads before it is applied. Pure; secrets are masked."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from connect_core.config.references import MASK, is_secret_name, masked
from connect_core.sdk.values import Json

_ABSENT = object()
_BINARY = ("parse.descriptors", "encode.descriptors")
"""What nobody reads: shown by its length and a checksum."""


def difference(old: Json | None, new: Json) -> list[str]:
    """`+ path: value`, `- path: value`, `~ path: old -> new`, in the order of the paths; empty when nothing changes."""
    before, after = dict(_leaves(old or {})), dict(_leaves(new))
    shown_before, shown_after = dict(_leaves(masked(old or {}))), dict(_leaves(masked(new)))
    lines = []
    for path in sorted(before.keys() | after.keys()):
        was, now = before.get(path, _ABSENT), after.get(path, _ABSENT)
        if was is _ABSENT:
            lines.append(f"+ {path}: {_text(path, shown_after[path])}")
        elif now is _ABSENT:
            lines.append(f"- {path}: {_text(path, shown_before[path])}")
        elif was != now:
            lines.append(f"~ {path}: {_text(path, shown_before[path])} -> {_changed(path, shown_after[path])}")
    return lines


def _changed(path: str, shown: Any) -> str:
    hidden = shown == MASK and is_secret_name(path.rpartition(".")[2])
    return f"{MASK} (changed)" if hidden else _text(path, shown)


def _leaves(value: Any, path: str = "") -> list[tuple[str, Any]]:
    """Dotted path and value of everything that is not a mapping; an empty mapping counts as a value. Of a list of
    mappings each by its place: `examples[0].record.topic`; where all have names of their own, these in their order, and
    each by its name: `rules[hot].to`."""
    if isinstance(value, dict) and value:
        return [leaf for key, child in value.items() for leaf in _leaves(child, f"{path}.{key}" if path else str(key))]
    if isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
        names = [str(one.get("name", "")) for one in value]
        if "" in names or len({*names}) < len(names):
            return [leaf for place, one in enumerate(value) for leaf in _leaves(one, f"{path}[{place}]")]
        rest = [{key: child for key, child in one.items() if key != "name"} for one in value]
        inner = zip(names, rest, strict=True)
        return [(path, names), *(leaf for name, one in inner if one for leaf in _leaves(one, f"{path}[{name}]"))]
    return [(path, value)] if path else []


def _text(path: str, value: Any) -> str:
    if path in _BINARY and isinstance(value, str):
        return f"{len(value):,} characters {hashlib.blake2b(value.encode(), digest_size=4).hexdigest()}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
