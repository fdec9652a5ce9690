"""Whatever is sent to the routes of Kafka Connect is taken or refused with words: never a failure of the server."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_core.service.kafka_connectors import class_of
from tests.unit.api.test_hostile_configs import BOUNDED, CLASSES, VALUES
from tests.unit.api.test_kafka_connect import SINK, SOURCE, client, server

__all__ = ["client", "server"]

KEYS = sorted({key.name for kind in ("FileStreamSource", "MqttSink") for key in class_of(kind).keys} | SINK.keys())
CONFIGS = st.dictionaries(st.sampled_from(KEYS) | st.text(), VALUES, max_size=8)
PLACES = st.sampled_from(["partition", "offset", "kafka_topic"]) | st.text()
OFFSETS = st.lists(
    st.dictionaries(PLACES, st.dictionaries(PLACES, VALUES, max_size=2) | VALUES, max_size=3) | VALUES, max_size=3
)
TOLD = (200, 201, 202, 204, 400, 404, 405, 409)


def judged(answer: httpx.Response) -> None:
    assert answer.status_code in TOLD, answer.text
    if answer.status_code >= 400:
        assert answer.json().keys() == {"error_code", "message"}
        assert answer.json()["error_code"] == answer.status_code


@BOUNDED
@given(config=CONFIGS, kind=st.none() | CLASSES, name=st.text(min_size=1))
def test_any_configuration_is_taken_or_refused(
    config: dict[str, Any], kind: str | None, name: str, client: httpx.Client
) -> None:
    sent = config | ({"connector.class": kind} if kind else {})
    body = json.dumps(sent)
    path = f"/connectors/{quote(name.encode('utf-8', 'replace'), safe='')}/config"
    judged(client.put(f"/connector-plugins/{kind or 'FileStreamSource'}/config/validate", content=body))
    judged(client.put(path, content=body))
    judged(client.patch(path, content=body))
    judged(client.post("/connectors", content=json.dumps({"name": name, "config": sent})))


@BOUNDED
@given(body=st.binary())
def test_any_bytes_are_refused(body: bytes, client: httpx.Client) -> None:
    for path in ("/connectors/in/config", "/connector-plugins/FileStreamSource/config/validate", "/admin/loggers/root"):
        judged(client.put(path, content=body))
    judged(client.post("/connectors", content=body))


@BOUNDED
@given(offsets=OFFSETS | VALUES)
def test_any_offsets_are_refused(offsets: Any, client: httpx.Client) -> None:
    client.post("/connectors", json={"name": "in", "config": SOURCE, "initial_state": "STOPPED"})
    judged(client.patch("/connectors/in/offsets", content=json.dumps({"offsets": offsets})))
    judged(client.patch("/connectors/in/offsets", content=json.dumps(offsets)))


@pytest.mark.parametrize("body", [b'"\\ud800"', b'{"\\ud800": "x"}', b"[" * 100_000, b'{"a": "\\u0000"}', b"NaN", b""])
def test_bodies_that_are_no_configuration(body: bytes, client: httpx.Client) -> None:
    judged(client.put("/connectors/in/config", content=body))
    judged(client.patch("/connectors/in/config", content=body))
    assert client.get("/connectors").json() == []


@pytest.mark.parametrize(
    "name", ["..", "a b", "ä", "'; DROP TABLE connectors; --", "x" * 300, "%00", "a\nb", "{{7*7}}", "\x00"]
)
def test_a_name_that_no_connector_may_have_is_refused(name: str, client: httpx.Client) -> None:
    judged(client.put(f"/connectors/{quote(name, safe='')}/config", json=SOURCE))
    judged(client.post("/connectors", json={"name": name, "config": SOURCE}))
    for verb in ("pause", "resume", "stop"):
        judged(client.put(f"/connectors/{quote(name, safe='')}/{verb}"))
    assert client.get("/connectors").json() == []
