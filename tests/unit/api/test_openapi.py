"""Every route is as the OpenAPI document says: Schemathesis, which makes requests of it, good ones and bad, finds no
other status, no other answer, and nothing that fails in the server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from connect_core.api import kafka_connect, native, native_problems
from connect_core.api.app import made
from tests.unit.api.test_rocketmq_connect import SINK, SOURCE, client, create, server

__all__ = ["client", "server"]

BELOW = {"": made(gets_change=True).openapi(), native_problems.PREFIX: native.made().openapi()}
"""The documents of the applications that describe their routes, by what is before these."""
OPERATIONS = sorted(
    (below, path, method)
    for below, document in BELOW.items()
    for path, item in document["paths"].items()
    for method in item
    if method in ("get", "put", "post", "patch", "delete")
)
_EXAMPLES = max(4, settings().max_examples // 25)
"""Of each route and way to make them."""
_REFUSED = "Invalid HTTP request received."
"""Of the listener: an address of more than 64 KB comes to no route."""
ASK_OTHERS = ("/topics/newest",)
"""Routes that need another server, which is not there: they say so with 503."""


@pytest.mark.parametrize("below", BELOW)
def test_each_route_is_as_its_document_says(client: httpx.Client, below: str) -> None:
    assert {*ASK_OTHERS} <= BELOW[native_problems.PREFIX]["paths"].keys()
    schema = _schema(BELOW[below])
    server = str(client.base_url.join(below)).rstrip("/")
    for path, method in [one[1:] for one in OPERATIONS if one[0] == below]:
        create(client, "in", SOURCE)
        create(client, "out", SINK)
        _requests(schema[path][method], server, may_fail=path in ASK_OTHERS)()


def test_nothing_that_is_asked_of_the_routes_of_kafka_connect_fails_in_the_server(client: httpx.Client) -> None:
    """But for a restart: it needs Airflow, and says so with 500, as there."""
    schema = _schema(kafka_connect.made().openapi())
    server = str(client.base_url.join(kafka_connect.PREFIX))
    for path, item in schema.items():
        for operation in item.values():
            if not path.endswith("/restart"):
                create(client, "in", SOURCE)
                _requests(operation, server, conforms=False)()


def _schema(document: dict[str, Any]) -> Any:
    """Schemathesis is imported late: every process of the tests would load it, and one needs it."""
    import schemathesis

    return schemathesis.openapi.from_dict(document)


def _requests(operation: Any, server: str, *, may_fail: bool = False, conforms: bool = True) -> Callable[[], None]:
    from schemathesis import GenerationMode, checks
    from schemathesis.specs.openapi import checks as of_documents

    failing = [] if may_fail else [checks.not_a_server_error]
    conforming = [
        of_documents.status_code_conformance,
        of_documents.content_type_conformance,
        of_documents.response_schema_conformance,
    ]

    @settings(phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck), max_examples=_EXAMPLES)
    @given(case=st.one_of(*(operation.as_strategy(generation_mode=mode) for mode in GenerationMode)))
    def requests(case: Any) -> None:
        answer = case.call(base_url=server)
        assume(answer.text != _REFUSED)
        case.validate_response(answer, checks=[*failing, *(conforming if conforms else ())])

    return requests


@pytest.mark.parametrize(("below", "path", "method"), OPERATIONS)
def test_a_route_has_a_summary_and_an_example(below: str, path: str, method: str) -> None:
    said = BELOW[below]["paths"][path][method]
    assert {"summary", "tags", "operationId"} <= said.keys()
    answers = [one for code, one in said["responses"].items() if code.startswith("2")]
    assert answers
    assert all("example" in one for answer in answers for one in answer.get("content", {}).values())


@pytest.mark.parametrize("below", BELOW)
def test_no_two_routes_have_one_name(below: str) -> None:
    paths = BELOW[below]["paths"]
    names = [paths[path][method]["operationId"] for under, path, method in OPERATIONS if under == below]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(("path", "method"), [one[1:] for one in OPERATIONS if one[0] == native_problems.PREFIX])
def test_failures_are_those_that_a_route_has(path: str, method: str) -> None:
    said = BELOW[native_problems.PREFIX]["paths"][path][method]["responses"]
    assert "500" in said
    assert ({"412", "428"} & said.keys() == set()) == (method == "get")
