"""How two documents differ, a line for each changed field; pure. Kept with every revision."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from connect_core.sdk.values import Json

_ABSENT = object()


def differences(old: Json, new: Json) -> list[str]:
    """`path: old -> new`, `path: added new`, `path: removed old`, by path. Empty for equal documents."""
    return list(_walk("", old, new))


def _walk(path: str, old: Any, new: Any) -> Iterator[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        for name in sorted(old.keys() | new.keys()):
            yield from _walk(f"{path}.{name}" if path else name, old.get(name, _ABSENT), new.get(name, _ABSENT))
    elif isinstance(old, list) and isinstance(new, list):
        for index in range(max(len(old), len(new))):
            yield from _walk(f"{path}[{index}]", _item(old, index), _item(new, index))
    elif old is _ABSENT:
        yield f"{path}: added {_shown(new)}"
    elif new is _ABSENT:
        yield f"{path}: removed {_shown(old)}"
    elif not _equal(old, new):
        yield f"{path}: {_shown(old)} -> {_shown(new)}"


def _item(items: list[Any], index: int) -> Any:
    return items[index] if index < len(items) else _ABSENT


def _equal(old: Any, new: Any) -> bool:
    """As JSON: true is not 1, which Python says it is."""
    return isinstance(old, bool) == isinstance(new, bool) and bool(old == new)


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
