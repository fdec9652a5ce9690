"""Keys in a format: their fields become fields of the row, and are written from fields of the row. Light: documents are
checked by it.

A key is one text in every system that there is, so only formats that are text can be one.
"""

from __future__ import annotations

from typing import Literal, get_args

from connect_core.pipeline.formats.known import FORMATS, INFER, read_format
from connect_core.rows.types import Type, is_text, struct_of
from connect_core.sdk.values import Json

KeyFormat = Literal["text", "json", "json-schema"]
"""What `key_format` may be. Of `text` a key has no fields: it passes as it is."""
PLAIN_KEY: KeyFormat = "text"


def check_key_format(word: object) -> object:
    """The word itself, but for a format that no key can have. Raises ValueError."""
    if word in FORMATS and word not in get_args(KeyFormat):
        raise ValueError(f"a key is one text, and cannot be {word}: use {', '.join(get_args(KeyFormat))}")
    return word


def check_read_key(parse: Json) -> None:
    """Of a whole `parse` that is sound but for its key. Raises ValueError."""
    if parse["key_format"] == PLAIN_KEY:
        if named := next((name for name in ("key_fields", "key_prefix") if parse[name]), None):
            raise ValueError(f"{named} goes with key_format json or json-schema")
        return
    if not parse["key_fields"]:
        raise ValueError(f"key_format {parse['key_format']} needs key_fields, as {{id: int64}}")
    if parse["unknown"] == "evolve":
        raise ValueError("key_format: the fields of a key do not evolve, so unknown can be reject or drop")
    if not is_text(parse["key_prefix"]):
        raise ValueError("key_prefix holds half of a surrogate pair, which is no text")
    if read_format(parse).reads_changes:
        raise ValueError(f"key_format: the row of format {parse['format']} has the fields of its key: leave it out")
    if parse["fields"] == INFER:
        return
    payload = read_format(parse).rows(parse)
    if payload is None:
        raise ValueError("key_format needs a payload whose fields are known, too, as format json with fields")
    if both := [name for name, _ in key_rows(parse).fields if payload.field(name)]:
        raise ValueError(
            f"{both[0]} is a field of the key and of the payload: key_prefix: key_ makes key_{both[0]} of the key's"
        )


def check_written_key(encode: Json) -> None:
    """Of a whole `encode`. Raises ValueError."""
    names = encode["key_fields"]
    if encode["key_format"] == PLAIN_KEY:
        if names:
            raise ValueError("key_fields goes with key_format json or json-schema")
    elif not names:
        raise ValueError(f"key_format {encode['key_format']} needs key_fields, as [id]")
    elif twice := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"key_fields: {twice!r} is there twice")


def key_rows(parse: Json) -> Type:
    """The fields of keys by their names in the row."""
    prefix = parse.get("key_prefix", "")
    fields = struct_of(parse["key_fields"]).fields if parse.get("key_fields") else ()
    return Type("struct", fields=tuple((f"{prefix}{name}", one) for name, one in fields))


def row_type(parse: Json) -> Type | None:
    """The fields of records: first those of the key, then those of the payload. None where payloads say it."""
    payload = read_format(parse).rows(parse)
    return payload and Type("struct", fields=(*key_rows(parse).fields, *payload.fields))


def check_key_rows(encode: Json, rows: Type) -> None:
    """Whether a key can be written of rows of this type. Raises ValueError."""
    for name in encode["key_fields"]:
        if rows.field(name) is None:
            raise ValueError(f"there is no field {name} (there are {', '.join(known for known, _ in rows.fields)})")
