"""What a connector promises of its records, and on what that depends."""

from __future__ import annotations

from collections.abc import Iterator

from connect_core.config import ConnectorDocument
from connect_core.sdk.guarantee import of_route
from connect_core.sdk.values import Json
from connect_core.systems import SYSTEMS


def promised(document: ConnectorDocument) -> Json | None:
    """How it delivers (`delivery`), the `conditions` of both its ends and of its policies, and within what it keeps the
    `order`; None when one of its ends promises nothing."""
    source = SYSTEMS[document.source.system].guarantee("source", document.source.options)
    sink = SYSTEMS[document.sink.system].guarantee("sink", document.sink.options)
    if source is None or sink is None:
        return None
    route = of_route(source, sink, _policies(document))
    return {"delivery": route.delivery, "conditions": list(route.conditions), "order": route.order}


def _policies(document: ConnectorDocument) -> Iterator[str]:
    """What must not happen, of that after which a run of any systems would stop, and this one continues."""
    if document.errors.on_data_loss == "skip":
        yield "No record is gone before it is read: `errors.on_data_loss: skip` records a gap and continues."
    if document.errors.tolerance:
        yield "No record is rejected: `errors.tolerance` makes it a dead letter and continues."
