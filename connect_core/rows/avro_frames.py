"""What stands before a value of Avro, and says which schema it was written with. Pure.

`single-object` is Avro's own: C3 01 and the fingerprint of the schema. `registry` is that of Confluent's Schema
Registry: a zero byte and the number of the schema there.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from connect_core.rows.avro_parts import Framing

_SINGLE = b"\xc3\x01"
_FINGERPRINT = 8
_NUMBER = struct.Struct(">bi")
MAX_ID = 2**31 - 1

Key = bytes | int | None
"""Which schema a value was written with: its fingerprint, its number in a registry, or nothing."""


class Framed(NamedTuple):
    key: Key
    payload: bytes


def split_frame(framing: Framing, value: bytes | None) -> Framed | str:
    """Or why it has no such beginning."""
    if value is None:
        return "no value"
    if framing == "plain":
        return Framed(None, value)
    if framing == "single-object":
        begin = len(_SINGLE) + _FINGERPRINT
        if len(value) < begin or not value.startswith(_SINGLE):
            return "it does not begin as a single object of Avro does, with C3 01 and a fingerprint"
        return Framed(value[len(_SINGLE) : begin], value[begin:])
    if len(value) < _NUMBER.size or value[0]:
        return "it does not begin with a zero byte and the number of a schema"
    _, number = _NUMBER.unpack_from(value)
    return Framed(number, value[_NUMBER.size :])


def frame(framing: Framing, key: Key) -> bytes:
    """What stands before each value."""
    if framing == "single-object" and isinstance(key, bytes):
        return _SINGLE + key
    if framing == "registry":
        return _NUMBER.pack(0, key if isinstance(key, int) else 0)  # 0: a look at what a document would write
    return b""


def key_of(framing: Framing, schema: object, number: int | None) -> Key:
    """Of values that are written with this schema, which has this number in a registry."""
    if framing == "single-object":
        return fingerprint(schema)
    return number if framing == "registry" else None


def fingerprint(schema: object) -> bytes:
    """CRC-64-AVRO of the canonical form, as a single object has it."""
    from fastavro.schema import fingerprint, to_parsing_canonical_form

    return bytes.fromhex(fingerprint(to_parsing_canonical_form(schema), "CRC-64-AVRO"))  # type: ignore[arg-type]
