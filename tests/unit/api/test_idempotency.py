"""Requests with a key: worked on once, and answered the same again."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import httpx
import pytest

from connect_core.ledger import Ledger
from connect_core.replication.host import host_identity
from connect_core.service import callers, first_answers, native_documents
from connect_core.service.callers import Caller
from connect_core.service.first_answers import TakenKey
from tests.unit.api.native import client, create, document, got, places, problem, server

__all__ = ["client", "server"]
KEY = {"Idempotency-Key": "3f2a-1"}


def apply(client: httpx.Client, name: str = "copy", **headers: str) -> httpx.Response:
    return client.post("/apply", json={"documents": [document(name)]}, headers=KEY | headers)


def test_the_same_request_again_has_the_first_answer(client: httpx.Client) -> None:
    first, again = apply(client), apply(client)
    assert first.json()["connectors"][0]["change"] == "created"
    assert (again.status_code, again.text) == (first.status_code, first.text)
    assert ("idempotent-replayed" in first.headers, again.headers["idempotent-replayed"]) == (False, "true")
    without = client.post("/apply", json={"documents": [document()]})
    assert without.json()["connectors"][0]["change"] == "unchanged"


def test_another_request_with_the_key_is_refused(client: httpx.Client) -> None:
    apply(client)
    problem(apply(client, "other"), 422, "key-reused")
    problem(client.post("/check", json={"documents": [document()]}, headers=KEY), 422, "key-reused")
    problem(client.post("/apply?preview=true", json={"documents": [document()]}, headers=KEY), 422, "key-reused")
    assert [one["name"] for one in got(client, "/connectors")["connectors"]] == ["copy"]


def test_a_refusal_is_an_answer_too(client: httpx.Client) -> None:
    wrong = {"documents": [document(tasks="x")]}
    first = client.post("/apply", json=wrong, headers=KEY)
    again = client.post("/apply", json=wrong, headers=KEY)
    problem(again, 422, "invalid")
    assert again.text == first.text


@pytest.mark.parametrize("key", ["", "a b", "x" * 256, "ä".encode()])
def test_what_is_no_key_is_refused(client: httpx.Client, key: Any) -> None:
    answer = client.post("/connectors/copy/pause", headers={"Idempotency-Key": key})
    assert places(answer, 400, "malformed") == ["Idempotency-Key"]


def test_while_the_first_is_worked_on_the_second_is_refused(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, go_on = Event(), Event()
    there = native_documents.apply

    def slow(*given: Any, **named: Any) -> Any:
        began.set()
        go_on.wait(30)
        return there(*given, **named)

    monkeypatch.setattr(native_documents, "apply", slow)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(apply, client)
        assert began.wait(30)
        problem(apply(client), 409, "key-in-use")
        go_on.set()
        assert first.result().status_code == 200
    assert apply(client).headers["idempotent-replayed"] == "true"


def test_what_went_wrong_in_the_server_is_worked_on_again(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(native_documents, "apply", lambda *given, **named: 1 / 0)
        answer = apply(client, Connection="close")  # as the server does
        problem(answer, 500, "unexpected")
        assert answer.headers["connection"] == "close"  # the server hangs up: nobody may send another request on it
        assert "division" not in answer.text
    assert apply(client).json()["connectors"][0]["change"] == "created"


def test_a_key_of_a_process_that_is_gone_is_taken_over(client: httpx.Client, folder: Path) -> None:
    create(client, "other")
    home = folder / ".waybill"
    first = first_answers.take("k", "d")
    assert isinstance(first, TakenKey)
    gone = f"{socket.gethostname()} {host_identity(home)} 000000000000"
    with Ledger.open(f"sqlite:///{home / 'ledger.db'}") as ledger:
        ledger.forget_key("", "k", first.attempt)
        ledger.take_key("", "k", digest="d", server=gone, attempt=first.attempt)
    second = first_answers.take("k", "d")
    assert isinstance(second, TakenKey)
    assert second.attempt != first.attempt
    with first_answers.working_on(first):
        known = first_answers.request_key()
    with first_answers.working_on(second):
        assert first_answers.request_key() == known
    assert first_answers.request_key() == ""


def test_a_key_belongs_to_its_caller(client: httpx.Client) -> None:
    create(client)
    taken = [first_answers.take("k", "d")]
    for name in ("ci", "cd"):
        with callers.calling(Caller(name, "admin", ("*",), "192.0.2.7")):
            taken.append(first_answers.take("k", name))
    assert all(isinstance(one, TakenKey) for one in taken)
    with callers.calling(Caller("ci", "admin", ("*",), "another address")), pytest.raises(first_answers.KeyInUse):
        first_answers.take("k", "ci")
