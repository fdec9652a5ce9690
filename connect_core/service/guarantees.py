"""What a connector promises of each record, and on what that depends."""

from __future__ import annotations

from connect_core.config import ConnectorDocument
from connect_core.sdk.guarantee import of_route
from connect_core.sdk.values import Json
from connect_core.systems import SYSTEMS


def promised(document: ConnectorDocument) -> Json | None:
    """How it delivers (`delivery`), and the `conditions` of both its ends; None when one of them promises nothing."""
    source = SYSTEMS[document.source.system].guarantee("source", document.source.options)
    sink = SYSTEMS[document.sink.system].guarantee("sink", document.sink.options)
    if source is None or sink is None:
        return None
    route = of_route(source, sink)
    return {"delivery": route.delivery, "conditions": list(route.conditions)}
