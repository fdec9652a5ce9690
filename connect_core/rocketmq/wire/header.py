"""Command headers, in both encodings of the wire (JSON and RocketMQ's binary one), to and from `Command`.

Requests are sent as JSON (every server reads it, signatures are safe with it); answers come in whichever encoding the
server was configured with, so both are decoded. Fields are text on both sides: `fields` makes values of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from struct import Struct
from struct import error as struct_error
from typing import Any, NoReturn

from connect_core.errors import WireFormatError
from connect_core.rocketmq.wire.frame import Frame, encode_frame

JSON = 0
BINARY = 1

RESPONSE_FLAG = 1
ONE_WAY_FLAG = 2

LANGUAGE = "PYTHON"
_LANGUAGE_CODE = 3
VERSION = 453
"""5.2.0: high enough for standard JSON routes, below the versions that are sent away (code 1500) by default."""

_FIXED = Struct(">hBhii")
_INT = Struct(">i")
_SHORT = Struct(">h")
_INT32 = range(-(2**31), 2**31)


@dataclass(frozen=True, slots=True)
class Command:
    """A request or a response. `body` is a read-only view when it was received."""

    code: int
    opaque: int = 0
    flag: int = 0
    remark: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)
    body: bytes | memoryview = b""

    @property
    def is_response(self) -> bool:
        return bool(self.flag & RESPONSE_FLAG)

    @property
    def is_one_way(self) -> bool:
        return bool(self.flag & ONE_WAY_FLAG)


def encode(command: Command, encoding: int = JSON) -> bytes:
    """The command as one frame."""
    header = _encode_json(command) if encoding == JSON else _encode_binary(command)
    return encode_frame(encoding, header, command.body)


def decode(frame: Frame) -> Command:
    """The command in a frame. Raises `WireFormatError`."""
    if frame.encoding == JSON:
        return _decode_json(frame)
    if frame.encoding == BINARY:
        return _decode_binary(frame)
    raise WireFormatError(f"Unknown header encoding {frame.encoding}")


def _encode_json(command: Command) -> bytes:
    document: dict[str, object] = {
        "code": command.code,
        "language": LANGUAGE,
        "version": VERSION,
        "opaque": command.opaque,
        "flag": command.flag,
    }
    if command.remark:
        document["remark"] = command.remark
    if command.fields:
        document["extFields"] = dict(command.fields)
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def _decode_json(frame: Frame) -> Command:
    try:
        document = json.loads(frame.header.decode())
    except (ValueError, RecursionError) as error:
        raise WireFormatError(f"Header is not JSON: {type(error).__name__}") from None
    if not isinstance(document, dict):
        raise WireFormatError("Header is not a JSON object")
    remark = document.get("remark")
    return Command(
        code=_whole_number(document, "code"),
        opaque=_whole_number(document, "opaque"),
        flag=_whole_number(document, "flag", 0),
        remark=remark if isinstance(remark, str) else "",
        fields=_fields(document.get("extFields")),
        body=frame.body,
    )


def _whole_number(document: dict[str, Any], name: str, default: int | None = None) -> int:
    value = document.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or value not in _INT32:
        raise WireFormatError(f"Header field {name} is not a 32-bit number")
    return value


def _fields(value: object) -> dict[str, str]:
    """Null values are left out, as servers do; other scalars become the text that a server would have sent."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise WireFormatError("extFields is not an object")
    return {str(name): _field_text(name, item) for name, item in value.items() if item is not None}


def _field_text(name: str, item: object) -> str:
    if isinstance(item, str):
        return item
    if isinstance(item, bool):
        return "true" if item else "false"
    if isinstance(item, int | float):
        return str(item)
    raise WireFormatError(f"extFields.{name[:40]} is neither text nor a number")


def _encode_binary(command: Command) -> bytes:
    """Empty fields are left out: servers read them as null, which breaks signatures."""
    pairs = []
    for name, value in command.fields.items():
        if value:
            key, text = name.encode(), value.encode()
            pairs += [_SHORT.pack(len(key)), key, _INT.pack(len(text)), text]
    block = b"".join(pairs)
    remark = command.remark.encode()
    fixed = _FIXED.pack(command.code, _LANGUAGE_CODE, VERSION, command.opaque, command.flag)
    return b"".join((fixed, _INT.pack(len(remark)), remark, _INT.pack(len(block)), block))


def _decode_binary(frame: Frame) -> Command:
    header = frame.header
    try:
        code, _, _, opaque, flag = _FIXED.unpack_from(header)
        remark, at = _text(header, _FIXED.size, _INT)
        (block_length,) = _INT.unpack_from(header, at)
    except struct_error:
        _broken(header, 0)
    at += _INT.size
    if block_length < 0 or at + block_length > len(header):
        _broken(header, at)
    fields = _binary_fields(header[at : at + block_length])
    return Command(code, opaque, flag, remark, fields, frame.body)


def _binary_fields(block: bytes) -> dict[str, str]:
    fields = {}
    at = 0
    while at < len(block):
        try:
            name, at = _text(block, at, _SHORT)
            fields[name], at = _text(block, at, _INT)
        except struct_error:
            _broken(block, at)
    return fields


def _text(data: bytes, at: int, length_of: Struct) -> tuple[str, int]:
    """Text behind its length, and where it ends."""
    (length,) = length_of.unpack_from(data, at)
    begin = at + length_of.size
    end = begin + length
    if length < 0 or end > len(data):
        _broken(data, at)
    try:
        return data[begin:end].decode(), end
    except UnicodeDecodeError:
        _broken(data, begin)


def _broken(data: bytes, at: int) -> NoReturn:
    raise WireFormatError(f"Binary header of {len(data)} bytes is broken at byte {at}") from None
