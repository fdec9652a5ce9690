"""What a target raises that refuses rows of a batch."""

from __future__ import annotations

from connect_core.errors import DataError


class RowsRefused(DataError):
    """The target refuses one of the rows for good, whichever. `kind` names the class of the refusal; the message says
    nothing of the rows' content."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
