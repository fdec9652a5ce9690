"""Whatever is sent as a configuration is taken or refused with words: never another status, never a stack trace."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from connect_core.service.flat_connectors import plugins
from tests.unit.api.test_rocketmq_connect import SINK, SOURCE, client, server

__all__ = ["client", "server"]

KEYS = sorted(
    {key for one in plugins() for key in one.keys} | SOURCE.keys() | SINK.keys() | {"transforms", "name", "version"}
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(list(SOURCE.values())),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
CONFIGS = st.dictionaries(st.sampled_from(KEYS) | st.text(), VALUES, max_size=8)
CLASSES = st.sampled_from([one.name for one in plugins()])
BOUNDED = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


@BOUNDED
@given(config=CONFIGS, kind=st.none() | CLASSES, name=st.text(min_size=1))
def test_any_configuration_is_taken_or_refused(
    config: dict[str, Any], kind: str | None, name: str, client: httpx.Client
) -> None:
    text = json.dumps(config | ({"connector.class": kind} if kind else {}))
    for path in ("/plugin/config/validate", f"/connectors/{quote(name, safe='')}"):
        told = client.post(path, content=text.encode("utf-8", "surrogatepass"))
        assert told.status_code in (200, 404, 405) or "\0" in name, told.text
        if told.status_code == 200:
            assert told.json().keys() in ({"status", "body"}, {"errorCode", "message"})


@BOUNDED
@given(body=st.binary())
def test_any_bytes_are_a_configuration_or_refused(body: bytes, client: httpx.Client) -> None:
    told = client.post("/connectors/in", content=body)
    assert told.status_code == 200
    assert told.json()["errorCode"] in (400, 500)


@pytest.mark.parametrize(
    "name", ["..", "a b", "ä", "'; DROP TABLE connectors; --", "x" * 300, "%00", "a\nb", "{{7*7}}"]
)
def test_a_name_that_no_connector_may_have_is_refused(name: str, client: httpx.Client) -> None:
    told = client.post(f"/connectors/{quote(name, safe='')}", json=SOURCE)
    assert told.status_code in (200, 404, 405)
    if told.status_code == 200:
        assert "name" in told.json()["message"]
    assert client.get("/connectors/list").json() == {"status": 200, "body": {}}
