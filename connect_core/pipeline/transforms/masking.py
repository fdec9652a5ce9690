"""Values hidden, column by column. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from connect_core.pipeline.transforms.casting import cast
from connect_core.pipeline.transforms.columns import Column
from connect_core.pipeline.transforms.mask_steps import Instead, MaskFields
from connect_core.pipeline.transforms.texts import json_texts, kind_of
from connect_core.pipeline.transforms.working import Work
from connect_core.rows.types import WITH_UNIT, Type

REDACTED = "***"


def mask(step: MaskFields, work: Work) -> None:
    for path, way in step.ways:
        work.change(path, partial(_replaced, way.text) if isinstance(way, Instead) else _MASKS[way])


def _replaced(text: str, field: pa.Field, column: pa.Array) -> Column:
    """What is missing stays missing."""
    [instead] = cast(pa.array([text]), "text", _type_of(field))
    return field, pc.if_else(column.is_valid(), instead, pa.scalar(None, field.type))


def _type_of(field: pa.Field) -> Type:
    of, kind = field.type, kind_of(field)
    if kind == "decimal":
        return Type(kind, precision=of.precision, scale=of.scale)
    return Type(kind, unit=of.unit if kind in WITH_UNIT else "")


def _redacted(field: pa.Field, column: pa.Array) -> Column:
    return field, pc.if_else(column.is_valid(), REDACTED, pa.scalar(None, pa.string()))


def _hashed(field: pa.Field, column: pa.Array) -> Column:
    found = json_texts(field, column).dictionary_encode()
    hashes = [hashlib.sha256(one.encode()).hexdigest() for one in found.dictionary.to_pylist()]
    return pa.field(field.name, pa.string()), pa.array(hashes, pa.string()).take(found.indices)


_MASKS: Mapping[str, Callable[[pa.Field, pa.Array], Column]] = {"redact": _redacted, "hash": _hashed}
