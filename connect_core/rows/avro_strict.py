"""Whether bytes are Avro of a schema to the letter. Pure.

The decoder takes more than that: a number of a branch or symbol below zero counts from the end, and a number of more
than 64 bits loses what is too many. So it is given nothing that was not looked at here.
"""

from __future__ import annotations

from connect_core.rows.avro_schemas import AvroNode

_FIXED = {"boolean": 1, "float": 4, "double": 8, "null": 0}
_LONGEST = 10
"""Bytes of a number."""


class NotAvro(ValueError):
    """Why not, without a word of what is there."""


def check_strictly(node: AvroNode, body: bytes) -> None:
    """Raises NotAvro."""
    if (end := _value(node, body, 0)) != len(body):
        raise NotAvro(f"it continues after its end, from byte {end + 1} on")


def _value(node: AvroNode, body: bytes, at: int) -> int:
    """Where it ends."""
    kind = node.kind
    if kind == "record":
        for _, of in node.fields:
            at = _value(of, body, at)
        return at
    if kind == "union":
        number, at = _number(body, at, len(node.branches))
        return _value(node.branches[number], body, at)
    if kind in ("array", "map"):
        return _blocks(node, body, at)
    if kind in ("int", "long"):
        return _signed(body, at)[1]
    if kind == "enum":
        return _number(body, at, len(node.symbols))[1]
    if kind in ("bytes", "string"):
        length, at = _number(body, at, len(body) + 1)
        return _after(body, at, length)
    if kind == "boolean" and body[at : at + 1] not in (b"\0", b"\1"):
        raise NotAvro(f"no boolean at byte {at + 1}")
    return _after(body, at, node.size if kind == "fixed" else _FIXED[kind])


def _blocks(node: AvroNode, body: bytes, at: int) -> int:
    [item] = node.branches
    while True:
        count, at = _signed(body, at)
        if count == 0:
            return at
        end = None
        if count < 0:
            size, at = _number(body, at, len(body) + 1)
            count, end = -count, at + size
        if count > len(body) - at:
            raise NotAvro("it ends too early")
        for _ in range(count):
            if node.kind == "map":
                length, at = _number(body, at, len(body) + 1)
                at = _after(body, at, length)
            at = _value(item, body, at)
        if end not in (None, at):
            raise NotAvro(f"a block that ends elsewhere than it says, at byte {at + 1}")


def _number(body: bytes, at: int, below: int) -> tuple[int, int]:
    number, end = _signed(body, at)
    if not 0 <= number < below:
        raise NotAvro(f"a number at byte {at + 1} that cannot stand there")
    return number, end


def _signed(body: bytes, at: int) -> tuple[int, int]:
    number = 0
    for place in range(_LONGEST):
        if at + place >= len(body):
            raise NotAvro("it ends too early")
        number |= (body[at + place] & 0x7F) << 7 * place
        if body[at + place] < 0x80:
            break
    else:
        raise NotAvro(f"a number of more than {_LONGEST} bytes at byte {at + 1}")
    if number >> 64:
        raise NotAvro(f"a number of more than 64 bits at byte {at + 1}")
    return (number >> 1) ^ -(number & 1), at + place + 1


def _after(body: bytes, at: int, length: int) -> int:
    if at + length > len(body):
        raise NotAvro("it ends too early")
    return at + length
