"""Decimal numbers as the log has them: groups of nine digits, the first and the last one shorter. Pure."""

from __future__ import annotations

from typing import NamedTuple

_DIGIT_BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)


class _Group(NamedTuple):
    bytes: int
    size: int
    """One more than the largest number in it."""


class DecimalForm:
    def __init__(self, precision: int, scale: int) -> None:
        whole, fraction = divmod(precision - scale, 9), divmod(scale, 9)
        groups = (whole[1], *[9] * (whole[0] + fraction[0]), fraction[1])
        self._groups = [_Group(_DIGIT_BYTES[digits], 10**digits) for digits in groups if digits]
        self.bytes = sum(one.bytes for one in self._groups)

    def number(self, raw: bytes) -> int:
        """Without its point."""
        negative = not raw[0] & 0x80
        data = bytes((raw[0] ^ 0x80, *raw[1:]))
        data = bytes(one ^ 0xFF for one in data) if negative else data
        number, at = 0, 0
        for width, size in self._groups:
            number = number * size + int.from_bytes(data[at : at + width], "big")
            at += width
        return -number if negative else number
