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
    "each file",
)
_SINK = Guarantee(
    "exactly once", ("The target is on a local file system.", "Nothing else writes to the target file."), ""
)
_SHARED = (
    "All hosts see one file system at the path, with the same inodes and births, and each sees at once what another has"
    " written or renamed (`shared: true`)."
)
_REPLACED = "The target file is not replaced or cut: `on_replaced: continue` does not deliver again what it held."


def guarantee(role: Role, options: Json) -> Guarantee:
    if role == "source":
        own = (_SHARED,) if options.get("shared", False) else ()
        order = None if options.get("parallel", False) else _SOURCE.order
        return _SOURCE._replace(conditions=(*_SOURCE.conditions, *own), order=order)
    if options.get("on_replaced", "fail") == "fail":
        return _SINK
    return _SINK._replace(conditions=(*_SINK.conditions, _REPLACED))
