"""Every route is as the OpenAPI document says: Schemathesis, which makes requests of it, good ones and bad, finds no
other status, no other answer, and nothing that fails in the server."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode, checks
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from connect_core.api import kafka_connect
from connect_core.api.app import made
from tests.unit.api.test_rocketmq_connect import SINK, SOURCE, create, served

OPERATIONS = sorted(
    (path, method)
    for path, item in made(gets_change=True).openapi()["paths"].items()
    for method in item
    if method in ("get", "put", "post", "patch", "delete")
)
CHECKS = [
    checks.not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


@pytest.fixture(scope="module")
def document() -> Any:
    return made(gets_change=True).openapi()


@pytest.fixture
def client(folder: Path) -> Iterator[httpx.Client]:
    with served(gets_change=True) as client:
        yield client


def test_each_route_is_as_its_document_says(client: httpx.Client, document: Any) -> None:
    schema = schemathesis.openapi.from_dict(document)
    for path, method in OPERATIONS:
        create(client, "in", SOURCE)
        create(client, "out", SINK)
        _requests(schema[path][method], str(client.base_url))()


def test_nothing_that_is_asked_of_the_routes_of_kafka_connect_fails_in_the_server(client: httpx.Client) -> None:
    """But for a restart: it needs Airflow, and says so with 500, as there."""
    schema = schemathesis.openapi.from_dict(kafka_connect.made().openapi())
    server = str(client.base_url.join(kafka_connect.PREFIX))
    for path, item in schema.items():
        for operation in item.values():
            if not path.endswith("/restart"):
                create(client, "in", SOURCE)
                _requests(operation, server, [checks.not_a_server_error])()


def _requests(operation: Any, server: str, wanted: Sequence[Any] = CHECKS) -> Callable[[], None]:
    @settings(phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck), max_examples=20)
    @given(case=st.one_of(*(operation.as_strategy(generation_mode=mode) for mode in GenerationMode)))
    def requests(case: Any) -> None:
        case.call_and_validate(base_url=server, checks=list(wanted))

    return requests


@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_a_route_has_a_summary_and_an_example(path: str, method: str, document: Any) -> None:
    said = document["paths"][path][method]
    assert {"summary", "tags", "operationId"} <= said.keys()
    [answer] = (one for code, one in said["responses"].items() if code.startswith("2"))
    assert all("example" in one for one in answer["content"].values())


def test_no_two_routes_have_one_name(document: Any) -> None:
    names = [document["paths"][path][method]["operationId"] for path, method in OPERATIONS]
    assert len(set(names)) == len(names)
