"""The step that hides values: how a document writes it, and the shape of rows behind it. Pure, light.

mask: {card: hash, note: redact, salary: {with: 0}, mail: {token: "${file:keys#mail}", key_id: k3f9a0c51d2e4b78}}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from connect_core.pipeline.key_ids import KEY_ID_EXAMPLE, KEY_ID_FORM, is_key_id
from connect_core.pipeline.transforms.casts import fault_of
from connect_core.pipeline.transforms.paths import Path, found, written
from connect_core.pipeline.transforms.row_step import TEXT, Constant, RowStep, mapping, with_field
from connect_core.rows.types import Type

TOKEN_EXAMPLE = f'{{token: "${{file:PATH#NAME}}", key_id: {KEY_ID_EXAMPLE}}}'


@dataclass(frozen=True)
class Instead:
    """What stands there instead of each value. The field keeps its type."""

    text: str


@dataclass(frozen=True)
class Token:
    """HMAC-SHA-256 by a key. `key` is a reference in a document, and the key itself where values are masked; `key_id`
    tells one key from another, so that another key is another document."""

    key: str = field(repr=False)
    key_id: str


Way: TypeAlias = str | Instead | Token
"""`redact`, `hash`, something instead, or a token."""


@dataclass(frozen=True)
class MaskFields(RowStep):
    ways: tuple[tuple[Path, Way], ...]

    def after(self, rows: Type) -> Type:
        for path, way in self.ways:
            given = found(rows, path)
            if isinstance(way, Instead):
                _check_instead(path, way.text, given)
                continue
            if way == "redact" and given != TEXT:
                raise ValueError(f"redact is for text, and {written(path)} is {given}: drop the field, or use hash")
            rows = with_field(rows, path, TEXT)
        return rows

    def written_out(self) -> Sequence[Path]:
        return [path for path, way in self.ways if not isinstance(way, Instead)]


def _check_instead(path: Path, text: str, given: Type) -> None:
    if fault_of(TEXT, given):
        raise ValueError(f"with is for single values, and {written(path)} is {given}: drop the field, or use hash")
    if given != TEXT and _is_unfit(text, given):
        raise ValueError(f"{written(path)}: {text} is no {given}")


def _is_unfit(text: str, given: Type) -> bool:
    import pyarrow as pa

    from connect_core.pipeline.transforms.casting import cast

    return bool(cast(pa.array([text]), TEXT.kind, given).null_count)


def mask_step(of: object) -> MaskFields:
    ways = mapping(of, "{card: hash, note: redact}")
    return MaskFields(tuple((path, _way(path, way)) for path, way in ways))


def _way(path: Path, way: object) -> Way:
    if way in ("redact", "hash"):
        return str(way)
    if isinstance(way, Mapping) and set(way) == {"with"} and isinstance(way["with"], bool | int | float | str):
        return Instead(_text(way["with"]))
    if isinstance(way, Mapping) and "token" in way:
        return _token(path, way)
    raise ValueError(f"{written(path)}: {way!r} is not redact, hash, {{with: VALUE}} or {TOKEN_EXAMPLE}")


def _token(path: Path, way: Mapping[str, object]) -> Token:
    """Without an id it is asked for later, where it can be said which it is (`config.mask_keys`)."""
    key, key_id = way["token"], str(way.get("key_id", ""))
    if set(way) - {"token", "key_id"} or not isinstance(key, str) or not key:
        raise ValueError(f"{written(path)}: a token has a key and its id: {TOKEN_EXAMPLE}")
    if key_id and not is_key_id(key_id):
        raise ValueError(f"{written(path)}: {KEY_ID_FORM}")
    return Token(key, key_id)


def _text(value: Constant) -> str:
    """As a cast of text to the type of the field reads it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
