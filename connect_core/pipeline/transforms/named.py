"""What conditions and templates of steps name: fields of the rows, and what else a record has. Pure, light."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches

from connect_core.pipeline.transforms.paths import SHOWN
from connect_core.rows.types import Type
from connect_core.sdk.templates import Reference


def check_names(rows: Type, names: Mapping[str, Reference]) -> None:
    """Raises ValueError for a field that no row has; `names` are by their text."""
    for text, one in names.items():
        if one.kind == "payload":
            _check_steps(rows, text, one.steps)
        elif one.kind == "header" and not text.startswith("header:"):
            _check_bare(rows, text)


def texts_of(names: Iterable[Reference]) -> dict[str, Reference]:
    """What a template names, by a text for it."""
    return {_text(one): one for one in names}


def _text(one: Reference) -> str:
    if one.kind == "payload":
        return "$" + "".join(f"[{step}]" if isinstance(step, int) else _step(step) for step in one.steps)
    named = {"header": f"header:{one.name}", "file": f"file:{one.name}", "text": "payload:text"}
    level = f"[{one.level}{':' if one.onward else ''}]" if one.level else ""
    return named.get(one.kind, one.kind) + level


def _step(name: str) -> str:
    return f".{name}" if name.isidentifier() else f"['{name}']"


def _check_steps(rows: Type, text: str, steps: tuple[str | int, ...]) -> None:
    one, above = rows, ""
    for place, step in enumerate(steps):
        inner = one.item if isinstance(step, int) else one.field(step)
        if inner is None and one.kind == "struct" and isinstance(step, str):
            near = _nearest(step, [name for name, _ in one.fields])
            words = f"; did you mean ${above}{_step(near)}?" if near else ""
            there = ", ".join(name for name, _ in one.fields[:SHOWN])
            raise ValueError(f"{text!r} names no field{words} (there are{' in $' + above if above else ''}: {there})")
        if inner is None:
            what = "no list" if isinstance(step, int) else "without fields"
            raise ValueError(f"{text!r} names nothing: {'$' + above if place else 'a row'} is {one.kind}, {what}")
        one, above = inner, above + (f"[{step}]" if isinstance(step, int) else _step(step))


def _check_bare(rows: Type, text: str) -> None:
    """A word alone is a header. One that is like a field was probably meant to be that."""
    if near := _nearest(text, [name for name, _ in rows.fields]):
        raise ValueError(f"{text!r} names a header; did you mean ${_step(near)}? (a header: header:{text})")


def _nearest(name: str, known: Sequence[str]) -> str:
    same = [one for one in known if one.lower() == name.lower()]
    return next(iter(same or get_close_matches(name, known, n=1)), "")
