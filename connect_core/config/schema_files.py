"""Schemas that a document names as files: `avro_schema: {path: PATH}` becomes what is in the file.

So the stored document has the schema itself: what an open range is finished with does not change with a file (delivery
rule 8), and whoever runs it needs no such file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from connect_core.config.paths import absolute_path
from connect_core.config.written import Place
from connect_core.rows.avro_schemas import read_schema
from connect_core.sdk.values import Json

KEY = "avro_schema"
_PATH = "path"
MAX_BYTES = 1024 * 1024


class Unread(ValueError):
    """Why a file is not read, and the place in the document that names it."""

    def __init__(self, place: Place, why: str) -> None:
        super().__init__(why)
        self.place = place


def with_schemas(data: Json, roots: tuple[Path, ...]) -> Json:
    """The document with the schemas of its files; a relative path begins at the first root. Raises Unread."""
    return data | {name: part | {KEY: _read(path, (name, KEY), roots)} for name, part, path in _named(data)}


def _named(data: Json) -> Iterator[tuple[str, Json, str]]:
    for name in ("parse", "encode"):
        part = data.get(name)
        schema: Any = part.get(KEY) if isinstance(part, Mapping) else None
        if isinstance(part, dict) and isinstance(schema, dict) and schema.keys() == {_PATH}:
            yield name, part, str(schema[_PATH])


def _read(path: str, place: Place, roots: tuple[Path, ...]) -> object:
    try:
        with open(absolute_path(path, roots), "rb") as file:
            text = file.read(MAX_BYTES + 1)
        if len(text) > MAX_BYTES:
            raise ValueError(f"{path} is longer than {MAX_BYTES >> 20} MiB, which no schema is")
        return read_schema(text.decode())
    except UnicodeDecodeError:
        raise Unread(place, f"{path} is not UTF-8 text") from None
    except OSError as error:
        raise Unread(place, f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise Unread(place, str(error)) from None
