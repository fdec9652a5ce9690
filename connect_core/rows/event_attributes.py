"""What a CloudEvent 1.0 has beside its data: attributes, their types and what their texts may be. Pure, and light:
documents are checked by it.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from connect_core.rows.types import Type, struct_of
from connect_core.sdk.values import Json

Mode = Literal["structured", "binary"]
VERSION = "1.0"
SPECVERSION, DATA, CONTENT_TYPE = "specversion", "data", "datacontenttype"
REQUIRED = ("id", "source", "type")
STANDARD = (*REQUIRED, "subject", "time", CONTENT_TYPE, "dataschema")
"""In the order in which rows have them; `specversion` is always the same, so no row has it."""
INTEGERS = ("int8", "int16", "int32", "uint8", "uint16")
"""Those that an integer of CloudEvents, of 32 bits, holds."""

_TEXT, _ANY_DATA = Type("text"), Type("bytes")
_TIME = Type("timestamp", unit="ns")
"""Of an event: Java's clocks give all nine digits."""
_EXTENSIONS = ("text", "bool", *INTEGERS, "bytes", "timestamp")
_TAKEN = "contenttype"
_NAME = re.compile(r"[a-z0-9]+", re.ASCII)
_SHAPE = "hoist: data puts all fields into data, set and copy make attributes of them"

_ILLEGAL = re.compile(
    "[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef"
    + "".join(chr(plane << 16 | low) for plane in range(17) for low in (0xFFFE, 0xFFFF))
    + "]"
)
"""Control characters, and what is no character."""
_URI_REFERENCE = re.compile(r"(?:[!#$&-;=?-Z_a-z~\[\]]|%[0-9A-Fa-f]{2})+")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_MEDIA_TYPE = re.compile(rf"{_TOKEN}/{_TOKEN}[ \t]*(?:;.*)?", re.DOTALL)
_CHARSET = re.compile(r";[ \t]*charset[ \t]*=[ \t]*\"?([^\";, \t]*)", re.IGNORECASE)
_UTF_8 = ("utf-8", "utf8", "us-ascii")


class Media(NamedTuple):
    """What a content type says. Nothing is known of one that is missing (`given` is False)."""

    given: bool
    json: bool
    utf8: bool


def media(content_type: str | None) -> Media:
    if content_type is None:
        return Media(given=False, json=False, utf8=True)
    subtype = content_type.partition(";")[0].strip().lower().partition("/")[2]
    charset = _CHARSET.search(content_type)
    is_json = subtype == "json" or subtype.endswith("+json")
    return Media(given=True, json=is_json, utf8=charset is None or charset[1].lower() in _UTF_8)


def event_rows(fields: Json | None) -> Type:
    """The rows of events: attributes, extensions, and last the data. `fields` are those of a document: extensions,
    `data`, which otherwise is its bytes, and `time` for another unit. Raises ValueError."""
    declared = dict(struct_of(fields).fields) if fields else {}
    data, time = declared.pop(DATA, _ANY_DATA), declared.pop("time", _TIME)
    if time.kind != "timestamp":
        raise ValueError(f"time: {time} is no moment: declare timestamp(ms), or leave it out")
    for name, one in declared.items():
        if name in (*STANDARD, SPECVERSION):
            words = "always 1.0" if name == SPECVERSION else "text in every event"
            raise ValueError(f"{name} is {words}: fields are data, extensions, and the unit of time")
        _check_extension(name, one)
    standard = tuple((name, time if name == "time" else _TEXT) for name in STANDARD)
    return Type("struct", fields=(*standard, *declared.items(), (DATA, data)))


def check_event_rows(rows: Type) -> None:
    """Whether rows are events as they are written. Raises ValueError."""
    if lacking := next((name for name in REQUIRED if rows.field(name) is None), None):
        raise ValueError(f"an event needs {', '.join(REQUIRED)}, and the rows have no {lacking}; {_SHAPE}")
    for name, one in rows.fields:
        if name in STANDARD and name != "time" and one.kind != "text":
            raise ValueError(f"{name} is {_word(one)}: cast it to text")
        if name == "time" and one.kind != "timestamp":
            raise ValueError(f"time is {_word(one)}, and no moment: cast it to timestamp")
        if name not in (*STANDARD, DATA):
            _check_extension(name, one)


def _check_extension(name: str, one: Type) -> None:
    if name == _TAKEN:
        raise ValueError(f"{name} cannot name an attribute: RocketMQ's SDK of CloudEvents calls {CONTENT_TYPE} so")
    if not _NAME.fullmatch(name) or name == SPECVERSION:
        raise ValueError(f"{name} cannot name an attribute of an event, which has a-z and 0-9 alone; {_SHAPE}")
    if one.kind not in _EXTENSIONS:
        known = ", ".join(_EXTENSIONS)
        raise ValueError(f"{name} is {_word(one)}, and attributes of events are {known}; {_SHAPE}")


def _word(one: Type) -> str:
    return "an object" if one.kind == "struct" else "a list" if one.item is not None else str(one)


def attribute_fault(name: str, text: str) -> str:
    """What is wrong with an attribute's text; empty for nothing."""
    if _ILLEGAL.search(text):
        return f"{name}: a control character, or what is no character"
    if name not in STANDARD:
        return ""
    if not text:
        return f"{name}: empty"
    if name == "source" and not _URI_REFERENCE.fullmatch(text):
        return "source: no URI or reference to one, as /shop/north (its characters are those of RFC 3986)"
    if name == "dataschema" and not (_SCHEME.match(text) and _URI_REFERENCE.fullmatch(text)):
        return "dataschema: no URI, as https://example.com/order.json"
    if name == CONTENT_TYPE and not _MEDIA_TYPE.fullmatch(text):
        return "datacontenttype: no media type, as application/json"
    return ""
