"""`GET /metrics`: the figures of the ledger in the text format of Prometheus (0.0.4), written by its own library."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fastapi import APIRouter
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.metrics_core import Metric as Written
from prometheus_client.registry import Collector
from starlette.responses import PlainTextResponse, Response

from connect_core.api import rocketmq_connect_openapi as said
from connect_core.errors import WaybillError
from connect_core.service import metrics
from connect_core.service.metrics import Family

_EXAMPLE = """\
# HELP waybill_records_delivered_total Records that were written to the target, by settled receipts
# TYPE waybill_records_delivered_total counter
waybill_records_delivered_total{connector="in",stream="live"} 3.0
"""


def router() -> APIRouter:
    routes = APIRouter(tags=["Metrics"], responses=said.FAILURES)
    content = {"text/plain": {"schema": {"type": "string"}, "example": _EXAMPLE}}
    routes.add_api_route(
        "/metrics",
        _metrics,
        methods=["GET"],
        summary="Figures of every connector, for Prometheus",
        response_class=PlainTextResponse,
        response_model=None,
        operation_id="get_metrics",
        responses={
            200: {"description": "The text format of Prometheus, version 0.0.4", "content": content},
            503: {"description": "The ledger cannot be asked", "content": {"text/plain": {}}},
        },
    )
    return routes


def _metrics() -> Response:
    """Prometheus takes every status but 200 for a scrape that failed: then `up` is 0."""
    try:
        families = metrics.families()
    except WaybillError as error:
        return PlainTextResponse(f"{error}\n", status_code=503)
    return Response(text_of(families), headers={"content-type": CONTENT_TYPE_PLAIN_0_0_4})


def text_of(families: Sequence[Family]) -> bytes:
    registry = CollectorRegistry()
    registry.register(_Once(families))
    return generate_latest(registry)


class _Once(Collector):
    """What is counted already. The registry asks `describe` for names alone, and would else collect twice."""

    def __init__(self, families: Sequence[Family]) -> None:
        self._families = families

    def describe(self) -> Iterable[Written]:
        return ()

    def collect(self) -> Iterable[Written]:
        for family in self._families:
            yield _written(family)


def _written(family: Family) -> Written:
    metric = family.metric
    kind = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
    made = kind(metrics.full_name(metric), metric.help, labels=metric.labels)
    for labels, value in family.samples:
        made.add_metric(labels, value)
    return made
