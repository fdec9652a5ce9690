"""`waybill serve --login`: who is let in, with which words, and who is not."""

from __future__ import annotations

import asyncio
import logging
from base64 import b64encode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from connect_core.api.app import made
from connect_core.api.login import token_of
from connect_core.ledger import Ledger
from connect_core.service import access
from connect_core.service.opened import storing
from tests.unit.api.test_rocketmq_connect import SOURCE, served

KAFKA = {"connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector", "file": "a", "topic": "t"}
PATHS = (
    "/connectors/list",
    "/kc/connectors",
    "/kc",
    "/metrics",
    "/openapi.json",
    "/kc/openapi.json",
    "/none",
    "/a%2Fb",
)


@pytest.fixture
def tokens(folder: Path) -> dict[str, str]:
    """One of each role, by the role."""
    with storing() as opened:
        return {role: access.create(opened, f"a-{role}", role)["token"] for role in ("viewer", "operator", "admin")}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """One for all tests: it looks for its ledger at each request."""
    with served(gets_change=False, login=True) as client:
        yield str(client.base_url)


@pytest.fixture
def client(server: str, tokens: dict[str, str]) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server, headers={"Host": "connect.example"}, trust_env=False, verify=False) as client:
        yield client


def basic(password: str, user: str = "anybody") -> str:
    return "Basic " + b64encode(f"{user}:{password}".encode()).decode()


def test_who_shows_no_token_to_our_own_routes_is_told_of_a_problem(client: httpx.Client) -> None:
    for method, path in (("GET", "/api/v1/connectors"), ("POST", "/api/v1/nothing"), ("GET", "/api/v1/openapi.json")):
        answer = client.request(method, path, headers={"Idempotency-Key": "k"})
        assert answer.status_code == 401
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert (answer.json()["type"], answer.json()["instance"]) == ("urn:waybill:problem:no-token", path)


def test_both_ways_to_show_a_token_do(client: httpx.Client, tokens: dict[str, str]) -> None:
    token = tokens["viewer"]
    for said in (f"Bearer {token}", f"bearer  {token}", basic(token), basic(token, user="")):
        answer = client.get("/kc/connectors", headers={"Authorization": said})
        assert (answer.status_code, answer.json()) == (200, []), said


@pytest.mark.parametrize("path", PATHS)
def test_without_a_token_nothing_is_answered(client: httpx.Client, path: str) -> None:
    for method in ("GET", "POST", "PUT", "DELETE", "OPTIONS", "HEAD"):
        answer = client.request(method, path)
        assert answer.status_code == 401, method
        assert answer.headers["www-authenticate"] == 'Bearer, Basic realm="waybill"'
    told = client.get(path).json()
    assert told["error_code" if path.startswith("/kc") else "errorCode"] == 401
    assert "waybill tokens create" in told["message"]


@pytest.mark.parametrize(
    "said",
    [
        *("", "Bearer", "Bearer wb_", "Bearer " + "wb_" + "a" * 43, "Digest wb_a", "wb_a"),
        *("Basic", "Basic !", "Basic ä", "Basic YQ", "Basic " + b64encode(b"\xff:\xff").decode(), basic("wb_")),
    ],
)
def test_what_is_no_token_lets_nobody_in(client: httpx.Client, said: str) -> None:
    answer = client.get("/kc/connectors", headers={"Authorization": said.encode()})
    assert answer.status_code == 401


def test_of_two_tokens_neither_counts(client: httpx.Client, tokens: dict[str, str]) -> None:
    both = [("Authorization", f"Bearer {tokens[role]}") for role in ("viewer", "admin")]
    assert client.get("/kc/connectors", headers=both).status_code == 401
    assert token_of([]) == token_of(["Bearer a", "Bearer a"]) == ""


def test_a_revoked_token_is_refused_at_the_next_request(client: httpx.Client, tokens: dict[str, str]) -> None:
    shown = {"Authorization": f"Bearer {tokens['admin']}"}
    assert client.get("/kc/connectors", headers=shown).status_code == 200
    with storing() as opened:
        access.revoke(opened, "a-admin")
    assert client.get("/kc/connectors", headers=shown).status_code == 401


def test_a_missing_right_is_403_in_the_words_of_each_api(client: httpx.Client, tokens: dict[str, str]) -> None:
    client.headers["Authorization"] = f"Bearer {tokens['viewer']}"
    words = "Token a-viewer has the role viewer, and this needs admin. Ask for a token with this role"
    theirs = client.post("/connectors/in", json=SOURCE)
    assert (theirs.status_code, theirs.json()["errorCode"]) == (403, 403)
    other = client.put("/kc/connectors/in/config", json={})
    assert (other.status_code, other.json()["error_code"]) == (403, 403)
    assert theirs.json()["message"].startswith(words)
    assert other.json()["message"].startswith(words)


def test_what_a_caller_changes_has_its_name(client: httpx.Client, tokens: dict[str, str], folder: Path) -> None:
    client.headers["Authorization"] = f"Bearer {tokens['admin']}"
    assert client.post("/connectors/in", json=SOURCE).status_code == 200
    assert client.put("/kc/connectors/in/stop").status_code == 204
    assert client.delete("/kc/connectors/in").status_code == 204
    who = "token a-admin from 127.0.0.1"
    with Ledger.open(f"sqlite:///{folder / '.waybill' / 'ledger.db'}") as ledger:
        deeds = [one for one in ledger.audit() if one.uid is not None]
        assert len(deeds) == 3
        assert {one.who for one in deeds} == {who}
        assert [one.who for one in ledger.revisions(str(deeds[0].uid))] == [who]


def test_of_many_callers_at_once_each_is_itself(client: httpx.Client, tokens: dict[str, str], folder: Path) -> None:
    names = [f"team-{number}" for number in range(8)]
    with storing() as opened:
        shown = {one: access.create(opened, f"of-{one}", "admin", connectors=[one])["token"] for one in names}

    def used(name: str) -> list[tuple[int, list[str]]]:
        mine, seen = {"Authorization": f"Bearer {shown[name]}"}, []
        for _ in range(5):
            put = client.put(f"/kc/connectors/{name}/config", json=KAFKA | {"file": name}, headers=mine)
            seen.append((put.status_code, client.get("/kc/connectors", headers=mine).json()))
        return seen

    with ThreadPoolExecutor(len(names)) as pool:
        for name, seen in zip(names, pool.map(used, names), strict=True):
            assert seen == [(201, [name]), *[(200, [name])] * 4]
    with Ledger.open(f"sqlite:///{folder / '.waybill' / 'ledger.db'}") as ledger:
        for name in names:
            who = {one.who for one in ledger.audit(ledger.connector(name).uid)}
            assert who == {f"token of-{name} from 127.0.0.1"}


def test_with_a_login_any_name_of_the_host_does_and_pages_of_other_sites_do_not(
    client: httpx.Client, tokens: dict[str, str]
) -> None:
    client.headers["Authorization"] = f"Bearer {tokens['viewer']}"
    assert client.get("/kc/connectors").status_code == 200
    for said in ({"Origin": "http://elsewhere.example"}, {"Sec-Fetch-Site": "cross-site"}):
        assert client.get("/kc/connectors", headers=said).status_code == 403
    assert client.get("/kc/connectors", headers={"Origin": "http://connect.example"}).status_code == 200
    with served(gets_change=False) as open_to_all:
        assert open_to_all.get("/kc/connectors", headers={"Host": "connect.example"}).status_code == 403


@pytest.mark.parametrize(
    ("told", "written"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8::1", "2001:db8::1"),
        ("fe80::1%eth0; root", "fe80::1"),
        ("root; from everywhere", "an unknown address"),
    ],
)
def test_only_an_address_is_written_down(
    told: str, written: str, tokens: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    async def ask() -> int:
        transport = httpx.ASGITransport(made(login=True), client=(told, 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://a") as client:
            return (await client.get("/metrics", headers={"Authorization": "Bearer wb_a"})).status_code

    assert asyncio.run(ask()) == 401
    assert caplog.messages[-1] == f"Refused a caller from {written}: the token is unknown"


def test_while_the_ledger_is_away_nobody_is_let_in(
    client: httpx.Client, tokens: dict[str, str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("WAYBILL_DATABASE_URL", "postgresql://me:secret@127.0.0.1:1/ledger")
    answer = client.get("/kc/connectors", headers={"Authorization": f"Bearer {tokens['admin']}"})
    assert (answer.status_code, answer.json()["error_code"]) == (503, 503)
    assert "127.0.0.1" not in answer.text
    assert "The ledger does not answer" in caplog.text
    assert client.get("/kc/connectors").status_code == 401


def test_a_token_is_in_no_answer_no_log_and_no_file(
    client: httpx.Client, tokens: dict[str, str], folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    answers: list[httpx.Response] = []
    with caplog.at_level(logging.DEBUG, logger="connect_core"):
        for role, token in tokens.items():
            client.headers["Authorization"] = basic(token)
            answers += [client.get(path) for path in PATHS]
            answers += [client.post("/connectors/in", json=SOURCE), client.post("/connectors/in", json={"a": role})]
            answers += [client.put("/kc/connectors/in/pause"), client.put("/kc/connectors/no/pause")]
            answers += [client.patch("/kc/connectors/in/config", json={"tasks.max": "x"})]
    with storing() as opened:
        for role in tokens:
            access.revoke(opened, f"a-{role}")
        said = str(access.listed(opened)) + str(opened.ledger.audit())
    answers += [client.get(path, headers={"Authorization": f"Bearer {tokens['admin']}"}) for path in PATHS]
    said += caplog.text + "".join(f"{one.headers}{one.text}" for one in answers)
    written = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    assert len({one.status_code for one in answers}) > 3
    for token in tokens.values():
        for form in (token, token.removeprefix("wb_"), basic(token).partition(" ")[2]):
            assert form not in said
            assert form.encode() not in written
