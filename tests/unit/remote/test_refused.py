"""What is not sent at all, commands that work here alone, and what a server, or none, answers."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.core import TyperGroup

from connect_core.cli.app import app
from connect_core.cli.elsewhere import REFUSED, WORKING
from connect_core.errors import ConfigError, Refused, Retriable, Unreachable, WaybillError
from connect_core.remote.client import ServerClient
from connect_core.remote.failures import for_commands, not_reached
from connect_core.remote.server import RemoteServer, server_of
from connect_core.service import access
from connect_core.service.opened import storing
from tests.unit.api.test_rocketmq_connect import served
from tests.unit.cli.conftest import Waybill, built

SERVER = RemoteServer("https://waybill.example:8082", "wb_secret", Path("a.token"))


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "a.token"
    path.write_text("wb_secret\n")
    return path


# ------------------------------------------------------------------------------------------------- before it is called


@pytest.mark.parametrize(
    "url", ["http://waybill.example:8082", "http://192.0.2.7", "http://localhost.example", "http://[2001:db8::1]:1"]
)
def test_no_token_is_sent_in_plain_text(url: str, token_file: Path) -> None:
    with pytest.raises(ConfigError, match=r"A token is not sent in plain text.*Name the server as https://") as refused:
        server_of(url, token_file, None)
    assert "secret" not in str(refused.value)
    assert server_of(url, None, None).token == ""


@pytest.mark.parametrize(
    "url", ["http://localhost:8082", "http://127.0.0.1:1/", "http://[::1]:8082/api/v1", "https://a.example/w/"]
)
def test_on_this_machine_or_by_tls_it_is(url: str, token_file: Path) -> None:
    server = server_of(url, token_file, None)
    assert (server.token, server.url.rstrip("/") == server.url, "secret" in repr(server)) == ("wb_secret", True, False)


@pytest.mark.parametrize(
    "url",
    ["waybill.example:8082", "ftp://a", "http://", "http://a:port", "http://a b", "https://a?x", "https://ann:pw@a"],
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match=r"address") as refused:
        server_of(url, None, None)
    assert "pw" not in str(refused.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "No such file"), ("", "has no token"), ("a\nb\n", "has no token"), ("ä", "it is no token")],
)
def test_a_file_without_a_token_is_refused(tmp_path: Path, content: str | None, said: str) -> None:
    path = tmp_path / "t"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ConfigError, match=said):
        server_of("https://a", path, None)


# ---------------------------------------------------------------------------------------------------- of this machine


def commands(group: Any = None, before: str = "") -> Iterator[str]:
    group = group or built(app)
    for name, found in group.commands.items():
        if isinstance(found, TyperGroup):
            yield from commands(found, f"{before}{name} ")
        else:
            yield f"{before}{name}"


def test_each_command_works_for_a_server_or_says_why_not() -> None:
    known = {name for name in commands() if not name.startswith("rmqconnect")}
    assert known >= WORKING
    assert {name for name in known - WORKING if not {name, name.split()[0]} & REFUSED.keys()} == set()
    assert not WORKING & REFUSED.keys()


@pytest.mark.parametrize("words", sorted({name for name in commands() if not name.startswith("rmqconnect")} - WORKING))
def test_what_is_of_a_machine_is_refused(waybill: Waybill, words: str) -> None:
    typed = waybill("--server", "http://127.0.0.1:1", *words.split())
    assert (typed.code, f"`waybill {words}` does not work for another host. " in typed.err) == (2, True), typed.err
    assert "without --server and WAYBILL_SERVER" in typed.err


def test_the_environment_names_a_server_too_and_help_is_always_given(
    waybill: Waybill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAYBILL_SERVER", "http://127.0.0.1:1")
    assert waybill("dev", "status").code == 2
    assert waybill("serve", "--help").code == 0
    assert waybill("connectors", "list").code == 3


def test_an_empty_address_is_no_ledger_of_this_machine(
    waybill: Waybill, applied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed = waybill("--server", "", "connectors", "delete", "copy", "--yes")
    assert (typed.code, "The address of the server is empty" in typed.err) == (2, True)
    monkeypatch.setenv("WAYBILL_SERVER", "")
    typed = waybill("connectors", "delete", "copy", "--yes")
    assert (typed.code, "unset WAYBILL_SERVER" in typed.err) == (2, True)
    assert waybill("--server", "http://127.0.0.1:1", "connectors", "list").code == 3
    monkeypatch.delenv("WAYBILL_SERVER")
    assert waybill("connectors", "show", "copy").code == 0


@pytest.mark.parametrize(
    "words",
    [
        ("run", "copy", "--window", "2s"),
        ("run", "copy", "--engine", "inline"),
        ("apply", "a.yaml", "--infer-again"),
        ("offsets", "set", "copy", "p", "0", "--abandon"),
        ("verify", "copy", "--repair"),
        ("backfill", "copy", "--from", "2h", "--engine", "inline"),
    ],
    ids=" ".join,
)
def test_options_that_no_server_has_are_refused(waybill: Waybill, words: tuple[str, ...]) -> None:
    typed = waybill("--server", "http://127.0.0.1:1", *words)
    assert (typed.code, "is not there for another host" in typed.err) == (2, True), typed.err


@pytest.mark.parametrize("name", ["..", ".", "a/b", ""])
def test_a_name_is_no_path(waybill: Waybill, name: str) -> None:
    typed = waybill("--server", "http://127.0.0.1:1", "connectors", "stop", name)
    assert (typed.code, "is no name of a connector" in typed.err) == (2, True)


# -------------------------------------------------------------------------------------------------- what is answered


def client(answers: Callable[[httpx.Request], httpx.Response], server: RemoteServer = SERVER) -> ServerClient:
    return ServerClient(server, httpx.MockTransport(answers))


def problem(status: int, name: str, **more: Any) -> httpx.Response:
    told = {
        "type": f"urn:waybill:problem:{name}",
        "title": "t",
        "status": status,
        "detail": "It is so",
        "instance": "/",
    }
    return httpx.Response(status, json={**told, **more}, headers={"content-type": "application/problem+json"})


@pytest.mark.parametrize(
    ("answer", "kind", "said"),
    [
        (problem(401, "no-token"), ConfigError, "The server refuses the token"),
        (
            problem(403, "not-allowed", kind="Refused", next_step="Ask for another"),
            Refused,
            "It is so. Ask for another",
        ),
        (problem(403, "not-allowed"), Refused, "It is so"),
        (httpx.Response(404, text="Not found"), ConfigError, "There is no Waybill at this address, or an older one"),
        (problem(404, "no-route"), ConfigError, "There is no Waybill at this address, or an older one"),
        (problem(404, "not-found", kind="ConfigError"), ConfigError, "It is so"),
        (httpx.Response(200, text="<html>"), ConfigError, "There is no Waybill at this address"),
        (problem(409, "busy", kind="LeaseHeld"), WaybillError, "It is so"),
        (problem(412, "stale", kind="ConfigError"), Retriable, "Nothing was changed. Look at what is there now"),
        (problem(413, "too-long"), ConfigError, "It is so"),
        (problem(500, "unexpected"), WaybillError, "It is so"),
        (problem(503, "unreachable", kind="Unreachable"), Unreachable, "It is so"),
        (httpx.Response(429, text="slow down"), Retriable, "A proxy in front of the server answers 429"),
        (httpx.Response(502, text="Bad gateway"), Unreachable, "A proxy in front of the server answers 502"),
        (
            httpx.Response(307, headers={"location": "https://evil.example/"}),
            ConfigError,
            "sends its callers to another",
        ),
    ],
    ids=lambda one: f"{one.status_code}" if isinstance(one, httpx.Response) else "",
)
def test_an_answer_that_is_no_good_one(answer: httpx.Response, kind: type[WaybillError], said: str) -> None:
    with pytest.raises(kind, match=said.replace(".", r"\.")) as refused:
        client(lambda request: answer).get("/connectors")
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "words",
    [
        ("status",),
        ("connectors", "list"),
        ("connectors", "show", "copy"),
        ("connectors", "pause", "copy"),
        ("receipts", "copy"),
        ("lag",),
        ("run", "copy"),
        ("offsets", "show", "copy"),
        ("dead-letters", "list", "copy"),
        ("rules", "list", "copy"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("told", [{}, dict.fromkeys(("connectors", "receipts", "offsets", "rules", "id"), 5), []])
def test_json_of_another_form_is_of_no_waybill(
    waybill: Waybill, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], told: object
) -> None:
    monkeypatch.setattr(ServerClient, "_once", lambda self, asked: httpx.Response(200, json=told))
    typed = waybill("--server", "http://127.0.0.1:1", *words, "--json")
    assert (typed.code, "There is no Waybill at this address" in typed.err) == (2, True), typed.err
    assert typed.json["error"]["kind"] == "ConfigError"


def test_what_lists_hold_in_another_form_is_of_no_waybill(waybill: Waybill, monkeypatch: pytest.MonkeyPatch) -> None:
    told = {"connectors": [{"name": "copy"}], "after": None}
    monkeypatch.setattr(ServerClient, "_once", lambda self, asked: httpx.Response(200, json=told))
    typed = waybill("--server", "http://127.0.0.1:1", "connectors", "list")
    assert (typed.code, "or one of another version" in typed.err, typed.out) == (2, True, "")
    assert "connectors.py" in waybill("--server", "http://127.0.0.1:1", "--debug", "connectors", "list").err


def test_a_list_that_has_no_end_ends() -> None:
    turns = iter(["a", "b", "a", "b"])
    for answer in (
        lambda _: httpx.Response(200, json={"runs": [{"id": "1"}], "after": "x"}),
        lambda _: httpx.Response(200, json={"runs": [{"id": "1"}], "after": next(turns)}),
        lambda _: httpx.Response(200, json={"runs": [], "after": "x"}),
        lambda _: httpx.Response(200, json={"runs": [], "after": 1}),
    ):
        with pytest.raises(ConfigError, match="its answer has another form"):
            client(answer).listed("/runs", "runs")


def test_a_problem_of_a_kind_that_nobody_knows_is_told() -> None:
    with pytest.raises(Retriable, match="It is so"):
        client(lambda _: problem(409, "new-one", kind="NewKind")).get("/x")


def test_what_a_server_says_does_not_drive_the_terminal(waybill: Waybill, monkeypatch: pytest.MonkeyPatch) -> None:
    told = problem(404, "not-found", detail="\x1b[2J\x1b]0;owned\x07 gone", kind="ConfigError", next_step="\x9b1m")
    monkeypatch.setattr(ServerClient, "_once", lambda self, asked: told)
    typed = waybill("--server", "http://127.0.0.1:1", "connectors", "list")
    assert (typed.code, typed.err) == (2, "Error: \\x1b[2J\\x1b]0;owned\\x07 gone. \\x9b1m\n")


def test_every_fault_is_told() -> None:
    faults = [
        {"path": "documents[0].sink", "message": "is missing"},
        {"path": "documents[1]", "message": "is no mapping"},
    ]
    with pytest.raises(ConfigError) as refused:
        client(lambda _: problem(422, "invalid", kind="ConfigError", errors=faults)).post("/check", {})
    assert [one.path for one in refused.value.faults] == ["documents[0].sink", "documents[1]"]


def test_a_lease_that_is_held_has_the_exit_code_that_it_has_here() -> None:
    with pytest.raises(WaybillError) as refused:
        client(lambda _: problem(409, "busy", kind="LeaseHeld")).get("/x")
    assert (refused.value.exit_code, type(refused.value).__name__) == (4, "LeaseHeld")


def test_the_token_goes_to_the_server_alone() -> None:
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(302, headers={"location": "https://evil.example/api/v1/connectors"})

    with pytest.raises(ConfigError):
        client(answer).get("/connectors")
    [request] = asked
    assert (request.url.host, request.headers["authorization"]) == ("waybill.example", "Bearer wb_secret")


def lost_once(asked: list[httpx.Request]) -> Callable[[httpx.Request], httpx.Response]:
    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        if len(asked) == 1:
            raise httpx.RemoteProtocolError("Server disconnected without sending a response.")
        return httpx.Response(200, json={})

    return answer


def test_a_request_whose_connection_is_lost_is_made_again_with_its_key() -> None:
    asked: list[httpx.Request] = []
    client(lost_once(asked)).post("/connectors/copy/runs", {})
    first, second = asked
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"] != ""
    client(lost_once([])).get("/connectors")


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
def test_what_has_no_key_is_sent_once(method: str) -> None:
    asked: list[httpx.Request] = []
    with pytest.raises(Unreachable, match="Whether it was done is not known"):
        client(lost_once(asked)).answered(method, "/connectors/copy")
    assert len(asked) == 1


def test_a_preview_that_is_lost_has_changed_nothing_and_is_asked_for_again() -> None:
    for method, path in (("PATCH", "/connectors/copy/offsets"), ("PUT", "/connectors/copy/rules"), ("POST", "/apply")):
        asked: list[httpx.Request] = []
        client(lost_once(asked)).answered(method, path, query={"preview": True}, body={})
        assert len(asked) == 2

        def lost(request: httpx.Request) -> httpx.Response:
            raise httpx.ReadError("reset")

        with pytest.raises(Unreachable, match="The server does not answer") as told:
            client(lost).answered(method, path, query={"preview": True}, body={})
        assert "is not known" not in str(told.value)


@pytest.mark.parametrize(
    ("path", "command"),
    [
        ("offsets", "waybill offsets show copy"),
        ("offsets/undo", "waybill offsets show copy"),
        ("rules", "waybill rules list copy"),
        ("dead-letters/discard", "waybill dead-letters list copy"),
        ("backfills/7/cancel", "waybill backfills list copy"),
        ("runs", "waybill runs copy"),
        ("pause", "waybill connectors list"),
    ],
)
def test_a_lost_change_is_looked_for_where_it_shows(path: str, command: str) -> None:
    with pytest.raises(Unreachable, match="Whether it was done is not known") as told:
        client(lost_once([])).answered("PATCH", f"/connectors/copy/{path}", body={})
    assert told.value.next_step == f"Look at what is there before you try again: {command}"


NDJSON = {"content-type": "application/x-ndjson"}


class Cut(httpx.SyncByteStream):
    """A body whose connection is lost behind `content`."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def __iter__(self) -> Iterator[bytes]:
        yield self._content
        raise httpx.RemoteProtocolError("peer closed connection without sending complete message body")


@pytest.mark.parametrize("begun", [b"", b'{"half'])
def test_lines_are_asked_for_again_where_none_came(begun: bytes) -> None:
    cut = httpx.Response(200, headers=NDJSON, stream=Cut(begun))
    answers = [cut, httpx.Response(200, headers=NDJSON, content=b"one\ntwo\n")]
    assert [*client(lambda _: answers.pop(0)).lines("/export")] == ["one\n", "two\n"]
    lost = iter([httpx.ReadError("reset"), httpx.Response(200, headers=NDJSON, content=b"one\n")])

    def answer(request: httpx.Request) -> httpx.Response:
        if isinstance(given := next(lost), Exception):
            raise given
        return given

    assert [*client(answer).lines("/export")] == ["one\n"]


def test_an_answer_of_which_a_part_came_broke_off() -> None:
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(200, headers=NDJSON, stream=Cut(b"one\ntw"))

    lines = client(answer).lines("/export")
    assert next(lines) == "one\n"
    with pytest.raises(Unreachable, match="The answer of the server broke off: peer closed connection"):
        next(lines)
    assert len(asked) == 1
    with pytest.raises(Unreachable, match="The answer of the server broke off"):
        [*client(lambda _: httpx.Response(200, headers=NDJSON, stream=Cut(b""))).lines("/export")]
    with pytest.raises(ConfigError, match="There is no Waybill at this address"):
        [*client(lambda _: httpx.Response(200, html="<html>")).lines("/export")]
    cut, again, lost = (httpx.Response(200, stream=Cut(content)) for content in (b'{"a":', b"", b""))
    answers = iter([cut, httpx.Response(200, json={"a": 1}), again, lost])
    there = client(lambda _: next(answers))
    assert there.get("/status") == {"a": 1}
    with pytest.raises(Unreachable, match="The answer of the server broke off: peer closed"):
        there.get("/status")


def test_what_was_sent_and_lost_twice_may_be_done() -> None:
    asked: list[httpx.Request] = []

    def lost(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        raise httpx.ReadError("reset") if len(asked) % 2 else httpx.ConnectError("refused")

    with pytest.raises(Unreachable, match="Whether it was done is not known"):
        client(lost).post("/connectors/copy/runs")
    with pytest.raises(Unreachable) as told:
        client(lost).judged("/check", {})
    assert "is not known" not in str(told.value)
    assert [bool(request.headers.get("idempotency-key")) for request in asked] == [True, True, False, False]


def test_what_only_judges_leaves_nothing_in_the_ledger(waybill: Waybill, folder: Path) -> None:
    (folder / "a.yaml").write_text("version: 1\nname: a\nsource: {file: {path: a}}\nsink: {file: {path: out/b}}\n")
    with served(gets_change=False) as there:
        for words in (("check",), ("apply", "--dry-run")):
            assert waybill("--server", str(there.base_url), *words, "a.yaml").code == 0
    assert not (folder / ".waybill").exists()


@pytest.mark.parametrize("tag", ['"3"', 'W/"3"'])
def test_a_revision_is_what_the_tag_says(tag: str) -> None:
    answer = httpx.Response(200, json={}, headers={"etag": tag})
    assert client(lambda _: answer).answered("GET", "/connectors/copy").revision == 3


def test_the_first_request_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("connect_core.remote.client._ASK_AGAIN_S", 0)
    answers = [problem(409, "key-in-use"), problem(409, "key-in-use"), httpx.Response(202, json={"id": "1"})]
    keys: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        keys.append(request.headers["idempotency-key"])
        return answers[len(keys) - 1]

    assert client(answer).post("/x") == {"id": "1"}
    assert len(set(keys)) == 1


def test_a_server_that_is_not_there(waybill: Waybill) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    typed = waybill("--server", f"http://127.0.0.1:{port}", "connectors", "list", "--json")
    assert (typed.code, typed.json["error"]["kind"]) == (3, "Unreachable")
    assert "The server does not answer: Connection refused" in typed.err
    assert f"http://127.0.0.1:{port}" in typed.err


def test_a_certificate_that_is_not_trusted_is_told() -> None:
    fault = ssl.SSLCertVerificationError(1, "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed")
    fault.verify_message = "self-signed certificate"
    error = httpx.ConnectError("x")
    error.__cause__ = fault
    told = not_reached(error, SERVER)
    assert (type(told), "self-signed certificate" in str(told), "--ca FILE" in str(told)) == (ConfigError, True, True)


@pytest.mark.parametrize(
    ("call", "command"),
    [
        ("POST /api/v1/connectors/copy/pause", "waybill connectors pause copy"),
        ("GET /api/v1/connectors/copy/runs", "waybill runs copy"),
        ("POST /api/v1/connectors/copy/runs: the next run continues", "the same command: the next run continues"),
        ("Did you mean 'a'? GET /api/v1/connectors", "Did you mean 'a'? See `waybill connectors list`"),
        ("GET /api/v1/plugins", "`waybill plugins` shows all"),
        ("Look at it", "Look at it"),
    ],
)
def test_advice_is_what_a_person_types(call: str, command: str) -> None:
    assert for_commands(call) == command


# --------------------------------------------------------------------------------------------------------- with a login


@pytest.fixture(scope="module")
def guarded() -> Iterator[httpx.URL]:
    with served(gets_change=True, login=True) as there:
        yield there.base_url


def token(name: str, role: str, folder: Path) -> Path:
    with storing() as opened:
        path = folder / f"{name}.token"
        path.write_text(str(access.create(opened, name, role, connectors=["*"])["token"]))
    return path


def test_a_role_is_asked_for_and_kept(waybill: Waybill, applied: Path, guarded: httpx.URL) -> None:
    viewer, operator = token("looks", "viewer", applied), token("works", "operator", applied)
    asked = ("--server", str(guarded))
    assert "The server wants a token" in waybill(*asked, "connectors", "list").err
    assert waybill(*asked, "--token-file", viewer, "connectors", "list").code == 0
    refused = waybill(*asked, "--token-file", viewer, "connectors", "pause", "copy")
    assert (refused.code, "Token looks has the role viewer, and this needs operator" in refused.err) == (6, True)
    assert waybill(*asked, "--token-file", operator, "connectors", "pause", "copy").code == 0
    waybill("tokens", "revoke", "works")
    gone = waybill(*asked, "--token-file", operator, "connectors", "list")
    assert (gone.code, "The server refuses the token" in gone.err) == (2, True)
    assert operator.read_text() not in gone.err + gone.out


def test_rmqconnect_has_a_token_as_well(waybill: Waybill, applied: Path, guarded: httpx.URL) -> None:
    asked = ("--server", str(guarded), "--token-file", token("peer", "operator", applied))
    assert json.loads(waybill(*asked, "rmqconnect", "getClusterInfo").out)["body"] == ["waybill"]
    assert waybill(*asked, "rmqconnect", "stopAll").code == 0
    without = waybill("--server", str(guarded), "rmqconnect", "getClusterInfo")
    assert (without.code, "The server wants a token" in without.err) == (2, True)
    (applied / "connect.conf").write_text("httpPort=1\n")
    both = waybill(*asked, "rmqconnect", "-s", "connect.conf", "stopAll")
    assert (both.code, "Two servers are named" in both.err) == (2, True)
