"""Whether bytes are Avro of a schema to the letter. Pure.

The decoder takes more than that: a number of a branch or symbol below zero counts from the end, and a number of more
than 64 bits loses what is too many. So it is given nothing that was not looked at here.
"""

from __future__ import annotations

from connect_core.rows.avro_schemas import AvroNode
from connect_core.rows.reading_by_schema import VALUES, NotOfSchema

_FIXED = {"boolean": 1, "float": 4, "double": 8, "null": 0}
_LONGEST = 10
"""Bytes of a number."""


def check_strictly(node: AvroNode, body: bytes) -> int:
    """How many values there are in it. Raises NotOfSchema."""
    walk = _Walk(body)
    if (end := walk.value(node, 0)) != len(body):
        raise NotOfSchema(f"it continues after its end, from byte {end + 1} on")
    return VALUES - walk.left


class _Walk:
    def __init__(self, body: bytes) -> None:
        self._body = body
        self.left = VALUES

    def value(self, node: AvroNode, at: int) -> int:
        """Where it ends."""
        kind = node.kind
        if kind == "record":
            self._count(len(node.fields))
            for _, of in node.fields:
                at = self.value(of, at)
            return at
        if kind == "union":
            number, at = self._number(at, len(node.branches))
            return self.value(node.branches[number], at)
        if kind in ("array", "map"):
            return self._blocks(node, at)
        if kind in ("int", "long"):
            return self._signed(at)[1]
        if kind == "enum":
            return self._number(at, len(node.symbols))[1]
        if kind in ("bytes", "string"):
            return self._counted(at)
        if kind == "boolean" and self._body[at : at + 1] not in (b"\0", b"\1"):
            raise NotOfSchema(f"no boolean at byte {at + 1}")
        return self._after(at, node.size if kind == "fixed" else _FIXED[kind])

    def _blocks(self, node: AvroNode, at: int) -> int:
        [item] = node.branches
        while True:
            count, at = self._signed(at)
            if count == 0:
                return at
            end = None
            if count < 0:
                size, at = self._number(at, len(self._body) + 1)
                count, end = -count, at + size
            if count > len(self._body) - at:
                raise NotOfSchema("it ends too early")
            self._count(count)
            for _ in range(count):
                at = self.value(item, self._counted(at) if node.kind == "map" else at)
            if end not in (None, at):
                raise NotOfSchema(f"a block that ends elsewhere than it says, at byte {at + 1}")

    def _count(self, values: int) -> None:
        self.left -= values
        if self.left < 0:
            raise NotOfSchema(f"it holds more than {VALUES:,} values")

    def _counted(self, at: int) -> int:
        """A text or bytes."""
        length, at = self._number(at, len(self._body) + 1)
        return self._after(at, length)

    def _number(self, at: int, below: int) -> tuple[int, int]:
        number, end = self._signed(at)
        if not 0 <= number < below:
            raise NotOfSchema(f"a number at byte {at + 1} that cannot stand there")
        return number, end

    def _signed(self, at: int) -> tuple[int, int]:
        number = 0
        for place in range(_LONGEST):
            if at + place >= len(self._body):
                raise NotOfSchema("it ends too early")
            number |= (self._body[at + place] & 0x7F) << 7 * place
            if self._body[at + place] < 0x80:
                break
        else:
            raise NotOfSchema(f"a number of more than {_LONGEST} bytes at byte {at + 1}")
        if number >> 64:
            raise NotOfSchema(f"a number of more than 64 bits at byte {at + 1}")
        return (number >> 1) ^ -(number & 1), at + place + 1

    def _after(self, at: int, length: int) -> int:
        if at + length > len(self._body):
            raise NotOfSchema("it ends too early")
        return at + length
