"""Schemas that a document names as files: `avro_schema: {path: PATH}` becomes what is in the file, and `descriptors`
that in base64.

So the stored document has the schema itself: what an open range is finished with does not change with a file (delivery
rule 8), and whoever runs it needs no such file.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from connect_core.config.paths import absolute_path
from connect_core.config.written import Place
from connect_core.rows.avro_schemas import read_schema
from connect_core.sdk.values import Json

_PATH = "path"
MAX_BYTES = 1024 * 1024


class Unread(ValueError):
    """Why a file is not read, and the place in the document that names it."""

    def __init__(self, place: Place, why: str) -> None:
        super().__init__(why)
        self.place = place


def with_schemas(data: Json, roots: tuple[Path, ...]) -> Json:
    """The document with the schemas of its files; a relative path begins at the first root. Raises Unread."""
    made = data
    for name, key, path in _named(data):
        made = made | {name: made[name] | {key: _READ[key](_content(path, (name, key), roots), path, (name, key))}}
    return made


def _named(data: Json) -> Iterator[tuple[str, str, str]]:
    for name in ("parse", "encode"):
        part: Any = data.get(name)
        for key in _READ if isinstance(part, dict) else ():
            schema = part.get(key)
            if isinstance(schema, dict) and schema.keys() == {_PATH}:
                yield name, key, str(schema[_PATH])


def _content(path: str, place: Place, roots: tuple[Path, ...]) -> bytes:
    try:
        with open(absolute_path(path, roots), "rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise Unread(place, f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise Unread(place, str(error)) from None
    if len(content) > MAX_BYTES:
        raise Unread(place, f"{path} is longer than {MAX_BYTES >> 20} MiB, which no schema is")
    return content


def _avro(content: bytes, path: str, place: Place) -> object:
    try:
        return read_schema(content.decode())
    except UnicodeDecodeError:
        raise Unread(place, f"{path} is not UTF-8 text") from None
    except ValueError as error:
        raise Unread(place, str(error)) from None


def _base64(content: bytes, path: str, place: Place) -> object:
    return b64encode(content).decode()


_READ: dict[str, Callable[[bytes, str, Place], object]] = {"avro_schema": _avro, "descriptors": _base64}
"""By the option that names a file what becomes of its content."""
