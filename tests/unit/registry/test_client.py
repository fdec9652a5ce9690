"""The client of a Schema Registry, against one that is written from its documentation."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from connect_core.errors import ConfigError, Refused, Unreachable, WaybillError, WireFormatError
from connect_core.registry.client import MAX_ANSWER, Registered, SchemaReference, SchemaRegistry
from connect_core.rows.protobuf_schemas import message_of, registered_file
from tests.protobuf import descriptors
from tests.schema_registry import Registry, served

ID: dict[str, Any] = {"type": "record", "name": "Id", "fields": [{"name": "id", "type": "long"}]}
WIDER = {**ID, "fields": [*ID["fields"], {"name": "at", "type": "long"}]}
SUBJECT = "orders/eu value"
DESCRIPTORS = descriptors('syntax = "proto3"; package t; message M { int32 x = 1; }')


@pytest.fixture
def registry() -> Iterator[Registry]:
    with served(Registry()) as one:
        yield one


def test_a_schema_is_registered_found_and_read(registry: Registry) -> None:
    client = SchemaRegistry(registry.url + "/")
    assert client.number_of(SUBJECT, ID) is None
    assert client.latest(SUBJECT) is None
    assert client.is_compatible(SUBJECT, ID)
    number = client.register(SUBJECT, ID)
    assert client.register(SUBJECT, ID) == client.number_of(SUBJECT, ID) == client.latest(SUBJECT) == number
    found = client.schema(number)
    assert found is not None
    assert (json.loads(found.text), found.kind, found.references) == (ID, "AVRO", ())
    assert client.schema(number + 1) is None
    assert client.number_of(SUBJECT, WIDER) is None
    assert registry.asked[0] == "POST /subjects/orders%2Feu%20value"


def test_a_schema_of_another_kind_says_so(registry: Registry) -> None:
    registry.add("s", "{}")
    registry.more[1] = {"schemaType": "JSON", "references": [{"name": "x", "subject": "y", "version": 1}]}
    assert SchemaRegistry(registry.url).schema(1) == Registered("{}", "JSON", (SchemaReference("x", "y", 1),))


def test_a_file_of_protobuf_is_registered_and_comes_as_it_was(registry: Registry) -> None:
    client = SchemaRegistry(registry.url)
    text = registered_file(DESCRIPTORS, message_of(DESCRIPTORS, "t.M"))
    number = client.register("m-value", text, "PROTOBUF")
    assert client.number_of("m-value", text, "PROTOBUF") == client.version("m-value", 1) == number
    assert client.version("m-value", 2) is client.version("n", 1) is None
    assert client.schema(number, serialized=True) == Registered(text, "PROTOBUF")
    found = client.schema(number)
    assert found is not None
    assert (found.kind, found.text[:6]) == ("PROTOBUF", "syntax")
    other = descriptors('syntax = "proto3"; package t; message N { int32 x = 1; }')
    changed = registered_file(other, message_of(other, "t.N"))
    assert not client.is_compatible("m-value", changed, "PROTOBUF")
    with pytest.raises(ConfigError, match="not compatible"):
        client.register("m-value", changed, "PROTOBUF")


def test_one_that_is_not_compatible_is_a_fault_of_the_document(registry: Registry) -> None:
    client = SchemaRegistry(registry.url)
    client.register(SUBJECT, ID)
    assert not client.is_compatible(SUBJECT, WIDER)
    with pytest.raises(ConfigError, match="not compatible with those of its subject: Schema being registered is inc"):
        client.register(SUBJECT, WIDER)


def test_a_login_goes_along_and_is_in_no_error(registry: Registry) -> None:
    registry.login = "ann:top-secret"
    assert SchemaRegistry(registry.url, "ann", "top-secret").schema(1) is None
    with pytest.raises(Refused, match=r"refused the login \(401\)") as raised:
        SchemaRegistry(registry.url, "ann", "wrong-one").schema(1)
    assert "wrong-one" not in str(raised.value)


def test_one_that_is_away_slow_or_failing_is_not_reachable_and_asked_once(registry: Registry) -> None:
    registry.slow_s = 0.5
    with pytest.raises(Unreachable, match=r"does not answer within 0.1 s"):
        SchemaRegistry(registry.url, timeout_s=0.1).schema(1)
    registry.slow_s, registry.failing = 0.0, 503
    with pytest.raises(Unreachable, match=r"failed \(503\)"):
        SchemaRegistry(registry.url).schema(1)
    assert len(registry.asked) == 2
    for url in ("http://127.0.0.1:1", "http://[", "http://127.0.0.1:1/\n"):
        with pytest.raises(Unreachable, match="cannot be reached"):
            SchemaRegistry(url).schema(1)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (lambda _: httpx.Response(200, text="<html>"), WireFormatError),
        (lambda _: httpx.Response(200, json=[1]), WireFormatError),
        (lambda _: httpx.Response(200, json={"schema": 7}), WireFormatError),
        (lambda _: httpx.Response(200, text="[" * 100_000), WireFormatError),
        (lambda _: httpx.Response(200, json={"schema": "", "references": [7]}), WireFormatError),
        (lambda _: httpx.Response(200, json={"schema": "", "references": [{"name": "x"}]}), WireFormatError),
        (lambda _: httpx.Response(404, text="no such page"), WireFormatError),
        (lambda _: httpx.Response(302, headers={"location": "http://elsewhere/"}), WireFormatError),
        (lambda _: httpx.Response(200, content=b" " * (MAX_ANSWER + 1)), WireFormatError),
        (lambda _: httpx.Response(422, json={"error_code": 42201, "message": "Invalid Avro schema"}), ConfigError),
        (lambda _: httpx.Response(429, json={"error_code": 429}), Unreachable),
    ],
)
def test_another_answer_is_one_of_our_errors(
    answer: Callable[[httpx.Request], httpx.Response], kind: type[WaybillError]
) -> None:
    client = SchemaRegistry("http://127.0.0.1:1", transport=httpx.MockTransport(answer))
    with pytest.raises(kind):
        client.schema(1)


def test_an_answer_that_trickles_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(httpx.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            import time

            for _ in range(100):
                time.sleep(0.05)
                yield b" "

    client = SchemaRegistry(
        "http://127.0.0.1:1", timeout_s=0.2, transport=httpx.MockTransport(lambda _: httpx.Response(200, stream=Slow()))
    )
    with pytest.raises(Unreachable, match="does not answer within"):
        client.schema(1)
