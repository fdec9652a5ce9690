"""Each step over columns agrees with the same step over one row at a time, in plain Python."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from typing import Any

import orjson
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from connect_core.pipeline.transforms.paths import Path, every_path, found, path_of, written
from connect_core.pipeline.transforms.steps import step_of
from connect_core.rows.schema import arrow_type
from connect_core.rows.types import Type
from tests.unit.pipeline.transforms.stepping import checked_run, values

Row = dict[str, Any]
Step = tuple[Any, Callable[[Row, int], Row | str | None]]
"""As written, and what it makes of a row at a place: a row, "unfit", or None for one that is filtered."""

_NAMES = ["a", "b", "c.d", 'e "f"', "g_h"]
_LEAF = {"int64": st.integers(-300, 300), "text": st.sampled_from(["", "1", "-7", "x", "é"]), "bool": st.booleans()}


@st.composite
def shapes(draw: st.DrawFn, depth: int = 0) -> Type:
    names = draw(st.lists(st.sampled_from(_NAMES), min_size=1, max_size=4, unique=True))
    return Type("struct", fields=tuple((name, draw(_fields(depth))) for name in names))


def _fields(depth: int) -> st.SearchStrategy[Type]:
    leaves = st.sampled_from(list(_LEAF)).map(Type)
    several = leaves.map(lambda one: Type("list", item=one))
    return st.one_of(leaves, several, shapes(depth + 1)) if depth < 2 else leaves | several


def of(one: Type, *, top: bool = False) -> st.SearchStrategy[Any]:
    if one.kind == "struct":
        made: st.SearchStrategy[Any] = st.fixed_dictionaries({name: of(inner) for name, inner in one.fields})
    elif one.item is not None:
        made = st.lists(of(one.item), max_size=2)
    else:
        made = _LEAF[one.kind]
    return made if top else st.none() | made


def column(one: Type, rows: list[Any]) -> pa.Array:
    """Under a null of a struct are values, as other programs leave them there."""
    if one.kind != "struct":
        return pa.array(rows, arrow_type(one))
    parts = [column(inner, [_left(inner) if row is None else row[name] for row in rows]) for name, inner in one.fields]
    mask = pa.array([row is None for row in rows], pa.bool_())
    return pa.StructArray.from_arrays(parts, fields=list(arrow_type(one)), mask=mask)


def _left(one: Type) -> Any:
    if one.kind == "struct":
        return {name: _left(inner) for name, inner in one.fields}
    return [] if one.item is not None else {"int64": 299, "text": "left", "bool": True}[one.kind]


# -------------------------------------------------------------------------------------------------------- row by row


def get(row: Any, path: Path) -> Any:
    for part in path:
        row = None if row is None else row[part]
    return row


def put(row: Any, path: Path, value: Any) -> Any:
    if row is None:
        return None
    name, *inner = path
    return {**row, name: put(row[name], tuple(inner), value) if inner else value}


def walked(row: Any, shape: Type, change: Callable[[Path, Any], list[tuple[str, Any]]], above: Path = ()) -> Any:
    """With what `change` makes of each field, from the leaves up."""
    if row is None or shape.kind != "struct":
        return row
    parts = [
        part
        for name, one in shape.fields
        for part in change((*above, name), walked(row[name], one, change, (*above, name)))
    ]
    return dict(parts)


def leaves(row: Any, shape: Type, before: str, separator: str) -> Iterator[tuple[str, Any]]:
    for name, one in shape.fields:
        value = None if row is None else row[name]
        if one.kind == "struct":
            yield from leaves(value, one, f"{before}{name}{separator}", separator)
        else:
            yield before + name, value


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def hashed(value: Any) -> Any:
    return None if value is None else hashlib.sha256(as_text(value).encode()).hexdigest()


def whole(value: Any) -> int | None:
    if value is None:
        return None
    if not re.fullmatch(r"0|-?[1-9][0-9]*", value) or not -(1 << 15) <= int(value) < 1 << 15:
        raise ValueError(value)
    return int(value)


# ------------------------------------------------------------------------------------------------------------ the steps


def renames(draw: st.DrawFn, shape: Type) -> Step:
    paths = draw(st.lists(st.sampled_from(list(every_path(shape))), min_size=1, max_size=3, unique=True))
    names = {path: draw(st.sampled_from([*_NAMES, "new", "newer"])) for path in paths}
    given = {written(path): name for path, name in names.items()}
    return {"rename": given}, lambda row, _: walked(row, shape, lambda path, one: [(names.get(path, path[-1]), one)])


def drops(draw: st.DrawFn, shape: Type) -> Step:
    paths = draw(st.lists(st.sampled_from(list(every_path(shape))), min_size=1, max_size=3, unique=True))
    given = {"drop": [written(path) for path in paths]}
    return given, lambda row, _: walked(row, shape, lambda path, one: [] if path in paths else [(path[-1], one)])


def keeps(draw: st.DrawFn, shape: Type) -> Step:
    names = draw(st.lists(st.sampled_from([name for name, _ in shape.fields]), min_size=1, unique=True))
    return {"keep": [written((name,)) for name in names]}, lambda row, _: {name: row[name] for name in names}


def casts(draw: st.DrawFn, shape: Type) -> Step:
    path = draw(st.sampled_from(list(every_path(shape))))
    kind = found(shape, path).kind
    wanted, change = ("int16", whole) if kind == "text" else ("text", lambda one: None if one is None else as_text(one))

    def run(row: Row, place: int) -> Row | str:
        try:
            return put(row, path, change(get(row, path)))
        except ValueError:
            return "unfit"

    return {"cast": {written(path): wanted}}, run


def masks(draw: st.DrawFn, shape: Type) -> Step:
    path = draw(st.sampled_from(list(every_path(shape))))
    if found(shape, path).kind == "text" and draw(st.booleans()):
        return {"mask": {written(path): "redact"}}, lambda row, _: put(
            row, path, None if get(row, path) is None else "***"
        )
    return {"mask": {written(path): "hash"}}, lambda row, _: put(row, path, hashed(get(row, path)))


def flattens(draw: st.DrawFn, shape: Type) -> Step:
    separator = draw(st.sampled_from(["_", ".", "ab"]))
    return {"flatten": separator}, lambda row, _: dict(leaves(row, shape, "", separator))


def sets(draw: st.DrawFn, shape: Type) -> Step:
    above = draw(st.sampled_from([(), *(path for path in every_path(shape) if found(shape, path).kind == "struct")]))
    path = (*above, draw(st.sampled_from([*_NAMES, "new"])))
    source = draw(st.sampled_from(list(every_path(shape))))
    if any('"' in part or "." in part for part in source) or draw(st.booleans()):
        value = draw(st.sampled_from([True, 7, -1, 0.5, "x", "{{x}}"]))
        constant = "{x}" if value == "{{x}}" else value
        return {"set": {written(path): value}}, lambda row, _: set_in(row, path, constant)

    def run(row: Row, place: int) -> Row:
        value = get(row, source)
        return set_in(row, path, f"<{'' if value is None else as_text(value)}/{place}>")

    return {"set": {written(path): f"<{{$.{'.'.join(source)}}}/{{topic[2]}}>"}}, run


def set_in(row: Any, path: Path, value: Any) -> Any:
    if row is None:
        return None
    name, *inner = path
    return {**row, name: set_in(row[name], tuple(inner), value) if inner else value}


def above(value: int | None, limit: int) -> bool:
    return value is not None and value > limit


def filters(draw: st.DrawFn, shape: Type) -> Step:
    plain = [path for path in every_path(shape) if not any('"' in part or "." in part for part in path)]
    if not plain:
        return {"filter": "topic[2] = '1'"}, lambda row, place: row if place == 1 else None
    path = draw(st.sampled_from(plain))
    name = "$." + ".".join(path)
    if found(shape, path).kind == "int64":
        limit = draw(st.integers(-300, 300))
        return {"filter": f"{name} > {limit}"}, lambda row, _: row if above(get(row, path), limit) else None
    return {"filter": f"{name} IS NOT NULL"}, lambda row, _: None if get(row, path) is None else row


KINDS = [renames, drops, keeps, casts, masks, flattens, sets, filters]


@st.composite
def several(draw: st.DrawFn) -> tuple[Type, list[Row], list[Step]]:
    shape = draw(shapes())
    rows = draw(st.lists(of(shape, top=True), max_size=6))
    steps: list[Step] = []
    now = shape
    for make in draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=4)):
        step = make(draw, now)
        try:
            now = step_of(step[0]).after(now)
        except ValueError:  # two names, or nothing left: faults have tests of their own
            continue
        steps.append(step)
    return shape, rows, steps


def one_by_one(rows: list[Row], steps: list[Step]) -> Iterator[tuple[int, Row | str]]:
    for place, row in enumerate(rows):
        now: Any = row
        for _, step in steps:
            now = step(now, place)
            if now in (None, "unfit"):
                break
        if now is not None:
            yield place, now


@given(several(), st.integers(0, 2))
def test_columns_go_through_steps_as_rows_do(case: tuple[Type, list[Row], list[Step]], begin: int) -> None:
    shape, rows, steps = case
    struct = column(shape, rows).slice(begin)
    done = checked_run([step for step, _ in steps], shape, struct)
    expected = dict(one_by_one(struct.to_pylist(), steps))
    made = dict(zip(done.places.tolist(), values(done), strict=True))
    assert {place for place, _ in done.unfit} == {place for place, one in expected.items() if one == "unfit"}
    kept = {place: one for place, one in expected.items() if one != "unfit"}
    assert made == kept
    assert [list(one) for one in made.values()] == [list(one) for one in kept.values()]


@given(shapes())
def test_a_path_is_read_as_it_was_written(shape: Type) -> None:
    for path in every_path(shape):
        assert path_of(written(path)) == path
