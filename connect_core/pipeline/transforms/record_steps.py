"""The step that sets what a record has beside its payload: how a document writes it. Pure, light.

record: {key: "{$.id}", tags: "{$.unit}", headers: {site: "{$.site}", trace: null}}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from connect_core.pipeline.transforms.named import check_names, texts_of
from connect_core.pipeline.transforms.row_step import RowStep
from connect_core.rows.types import Type
from connect_core.sdk.records import COORDINATES_PROPERTY
from connect_core.sdk.templates import Reference, Template, template

PAIR, END = "\x01", "\x02"
"""Between the name and the value of a header, and behind it (`sdk.records.encode_headers`)."""
_OTHERWISE = {"KEYS": "key", "TAGS": "tags"}
_EXAMPLE = '{key: "{$.id}", headers: {site: "{$.site}", trace: null}}'


@dataclass(frozen=True)
class SetRecord(RowStep):
    """What is None stays as it is. Of a record, a key, tags or a header whose template gives nothing is not there."""

    on_images = "waits"
    key: Template | None = None
    tags: Template | None = None
    headers: tuple[tuple[str, Template | None], ...] = ()
    """None: the header is dropped."""

    def after(self, rows: Type) -> Type:
        check_names(rows, self.references())
        return rows

    def references(self) -> Mapping[str, Reference]:
        given = (self.key, self.tags, *(value for _, value in self.headers))
        return texts_of(name for one in given if one is not None for name in one.names())


def record_step(of: object) -> SetRecord:
    if not isinstance(of, Mapping) or not of:
        raise ValueError(f"needs a mapping, as {_EXAMPLE}")
    if unknown := [str(one) for one in of if one not in ("key", "tags", "headers")]:
        raise ValueError(f"sets key, tags and headers, not {', '.join(unknown)}")
    headers = of.get("headers", {})
    if not isinstance(headers, Mapping):
        raise ValueError(f"headers: needs a mapping, as {_EXAMPLE}")
    values = tuple((_header(name), None if value is None else _template(value)) for name, value in headers.items())
    given = {one: _template(of[one]) for one in ("key", "tags") if one in of}
    return SetRecord(given.get("key"), given.get("tags"), values)


def _header(name: object) -> str:
    if not isinstance(name, str) or not name or any(one in name for one in (PAIR, END)):
        raise ValueError(f"{name!r} is no name of a header")
    if name == COORDINATES_PROPERTY:
        raise ValueError(f"the header {name} is Waybill's own")
    if name in _OTHERWISE:
        raise ValueError(f"{name} is no header of its own: set {_OTHERWISE[name]}")
    return name


def _template(value: object) -> Template:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is no text")
    return template(value)
