"""What files promise as either end (docs/guarantees.md)."""

from __future__ import annotations

from connect_core.sdk.guarantee import Guarantee
from connect_core.sdk.plugin import Role
from connect_core.sdk.values import Json

_SOURCE = Guarantee(
    "exactly once",
    (
        "No log is cut in place and then grows past the position that was read with the same bytes again.",
        "A log stays in its folder, under any name, until a run has read its last line.",
    ),
)
_SINK = Guarantee("exactly once", ("The target is on a local file system.", "Nothing else writes to the target file."))


def guarantee(role: Role, options: Json) -> Guarantee:
    return _SOURCE if role == "source" else _SINK
