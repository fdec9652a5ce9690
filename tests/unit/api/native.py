"""What the tests of Waybill's own API share: a server, a client below `/api/v1`, and the connector `copy`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from connect_core.api.native_problems import MEDIA_TYPE, PREFIX
from connect_core.service.opened import working
from connect_core.service.run_report import RunListener
from connect_core.service.runs import How, run
from tests.unit.api.test_rocketmq_connect import served

JSON = dict[str, Any]


@pytest.fixture(scope="module")
def server() -> Iterator[httpx.URL]:
    """One for all tests of a module: it looks for its ledger at each request."""
    with served(gets_change=False) as client:
        yield client.base_url


@pytest.fixture
def client(
    server: httpx.URL, folder: Path, monkeypatch: pytest.MonkeyPatch, warm_operations: None
) -> Iterator[httpx.Client]:
    monkeypatch.setenv("WAYBILL_ENGINE", "inline")
    with httpx.Client(base_url=server.join(PREFIX), trust_env=False, verify=False) as client:
        yield client


def document(name: str = "copy", **more: Any) -> JSON:
    ends = {"source": {"file": {"path": "logs/*.log"}}, "sink": {"file": {"path": f"out/{name}.txt"}}}
    return {"version": 1, "name": name, **ends, **more}


def create(client: httpx.Client, name: str = "copy", **more: Any) -> JSON:
    answer = client.put(f"/connectors/{name}", json=document(name, **more))
    assert answer.status_code == 201, answer.text
    told: JSON = answer.json()
    return told


def got(client: httpx.Client, path: str, **query: Any) -> Any:
    answer = client.get(path, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def problem(answer: httpx.Response, status: int, name: str) -> JSON:
    """What it says, once it has the form that RFC 9457 wants."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == MEDIA_TYPE
    told: JSON = answer.json()
    assert (told["status"], told["type"]) == (status, f"urn:waybill:problem:{name}")
    assert told["title"]
    assert told["detail"]
    assert told["instance"] == answer.request.url.path
    return told


def places(answer: httpx.Response, status: int, name: str) -> list[str]:
    """Of all that is wrong."""
    return [one["path"] for one in problem(answer, status, name)["errors"]]


def moved(name: str = "copy") -> None:
    """One run of it, here."""
    from contextlib import nullcontext

    listener = RunListener(lambda _: None, lambda _: None)
    with working() as opened:
        run(opened, name, How(lambda: nullcontext(listener), lambda _: None, "inline"))
