"""A statement that takes too long: what is raised for it. Light."""

from __future__ import annotations

from connect_core.errors import Retriable


class StatementTooSlow(Retriable):
    """`offset` is that of the record that it takes too long for; None where there were several."""

    def __init__(self, what: str, *, offset: int | None, where: str = "", next_step: str = "") -> None:
        super().__init__(what, where=where, next_step=next_step)
        self.offset = offset
