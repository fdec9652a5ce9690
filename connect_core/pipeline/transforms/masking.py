"""Values hidden, column by column. Pure."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from connect_core.pipeline.key_ids import key_id_of
from connect_core.pipeline.transforms.casting import cast
from connect_core.pipeline.transforms.columns import Column
from connect_core.pipeline.transforms.mask_steps import Instead, MaskFields, Token, Way
from connect_core.pipeline.transforms.texts import json_texts, kind_of
from connect_core.pipeline.transforms.working import Work
from connect_core.rows.types import WITH_UNIT, Type

Change: TypeAlias = Callable[[pa.Field, pa.Array], Column]

REDACTED = "***"


def mask(step: MaskFields, work: Work) -> None:
    for path, way in step.ways:
        work.change(path, _change(way))


def _change(way: Way) -> Change:
    if isinstance(way, Instead):
        return partial(_replaced, way.text)
    return partial(_texts_of, _tokens(way)) if isinstance(way, Token) else _MASKS[way]


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


def _texts_of(made: Callable[[bytes], str], field: pa.Field, column: pa.Array) -> Column:
    """Of each different value once."""
    found = json_texts(field, column).dictionary_encode()
    texts = [made(one.encode()) for one in found.dictionary.to_pylist()]
    return pa.field(field.name, pa.string()), pa.array(texts, pa.string()).take(found.indices)


def _hash(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()


def _tokens(way: Token) -> Callable[[bytes], str]:
    """Never by another key than the one that the document means, nor by the text of a reference."""
    if key_id_of(way.key) != way.key_id:
        raise ValueError(f"The key of a mask is not the one with the id {way.key_id}")
    begun = hmac.new(way.key.encode(), digestmod=hashlib.sha256)

    def token(text: bytes) -> str:
        one = begun.copy()
        one.update(text)
        return one.hexdigest()

    return token


_MASKS: Mapping[str, Change] = {"redact": _redacted, "hash": partial(_texts_of, _hash)}
