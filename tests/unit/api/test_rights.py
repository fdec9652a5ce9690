"""Every route of the three APIs, tried by each role and by a caller whose patterns do not fit.

A route that is not in the table fails a test here: nobody can add one and forget who may call it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

import httpx
import pytest
from starlette.routing import BaseRoute, Mount, Route

from connect_core.api.app import made
from connect_core.api.native_examples import EXPORTED
from connect_core.ledger import Connector, Ledger
from connect_core.service import access, flat_connectors, operations
from connect_core.service.callers import ROLES, AccessRole
from connect_core.service.opened import storing
from tests.unit.api.test_rocketmq_connect import SOURCE as ROCKETMQ
from tests.unit.api.test_rocketmq_connect import served

HIDDEN, UNKNOWN = "payroll", "nobody"
KAFKA = {"connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector", "file": "a", "topic": "t"}
CLASS = "FileStreamSource"


class Call(NamedTuple):
    """`about`: of the server itself, of all connectors, of one by its name, or of one that it may make."""

    needs: AccessRole
    about: Literal["server", "all", "one", "made"] = "one"
    body: Any = None
    code: int = 200


def _verbs(prefix: str) -> dict[tuple[str, str], Call]:
    """Changes are GETs there too, with --gets-change."""
    changes = {f"/connectors/{verb}/all": Call("operator", "all") for verb in ("stop", "pause", "resume")}
    changes |= {f"/connectors/{{connectorName}}/{verb}": Call("operator") for verb in ("stop", "pause", "resume")}
    changes["/connectors/stopAll"] = Call("operator", "all")
    changes["/plugin/reload"] = Call("operator", "server")
    changes["/plugin/config/validate"] = Call("admin", "made", ROCKETMQ)
    changes["/connectors/{connectorName}"] = Call("admin", "made", ROCKETMQ)
    return {(method, prefix + path): call for path, call in changes.items() for method in ("GET", "POST")}


_LISTS = ("/connectors/list", "/getClusterInfo", "/allocated/connectors", "/allocated/tasks", "/getConfigInfo")
_OF_COMMANDS = ("/getAllocatedInfo", "/getAllocatedConnectors", "/getAllocatedTasks", "/metrics")
_OF_ONE = ("/config", "/status", "/tasks", "/tasks/{task}/status")
_OF_SERVER = ("/openapi.json", "/kc/openapi.json", "/plugin/list", "/plugin/list/connectors", "/plugin/config")
_KC = "/kc/connectors/{name}"
_OFFSETS = {"offsets": [{"partition": {"partition": "file:a:1:1"}, "offset": {"offset": 0}}]}
_NATIVE = "/api/v1/connectors/{name}"
_OPERATION = "/api/v1/operations/{number}"
_NATIVE_SERVER = ("/openapi.json", "/plugins", "/plugins/{system}", "/version")
_NATIVE_READ = ("", "/status", "/history", "/rules", "/runs", "/receipts", "/gaps", "/offsets", "/dead-letters")
_GIVING_UP = ("discard", "erase", "redirect")
CALLS: dict[tuple[str, str], Call] = {
    **{("GET", path): Call("viewer", "server") for path in _OF_SERVER},
    **{("GET", path): Call("viewer", "all") for path in _LISTS + _OF_COMMANDS},
    **{("GET", f"/connectors/{{connectorName}}{path}"): Call("viewer") for path in _OF_ONE},
    **_verbs(""),
    ("GET", "/kc/"): Call("viewer", "server"),
    ("GET", "/kc/connectors"): Call("viewer", "all"),
    ("POST", "/kc/connectors"): Call("admin", "made", {"name": "{name}", "config": KAFKA}, 409),
    **{("GET", _KC + path): Call("viewer") for path in ("", *_OF_ONE, "/tasks-config", "/topics", "/offsets")},
    ("PUT", f"{_KC}/config"): Call("admin", "made", KAFKA),
    ("PATCH", f"{_KC}/config"): Call("admin", "one", {"tasks.max": "1"}),
    ("DELETE", _KC): Call("admin", "one", None, 204),
    ("PUT", f"{_KC}/pause"): Call("operator", "one", None, 202),
    ("PUT", f"{_KC}/resume"): Call("operator", "one", None, 202),
    ("PUT", f"{_KC}/stop"): Call("operator", "one", None, 204),
    ("POST", f"{_KC}/restart"): Call("operator", "one", None, 204),
    ("POST", f"{_KC}/tasks/{{task}}/restart"): Call("operator", "one", None, 204),
    ("PUT", f"{_KC}/topics/reset"): Call("operator", "one", None, 202),
    ("PATCH", f"{_KC}/offsets"): Call("admin", "one", _OFFSETS, 400),
    ("DELETE", f"{_KC}/offsets"): Call("admin", "one", None, 400),
    ("GET", "/kc/connector-plugins"): Call("viewer", "server"),
    ("GET", "/kc/connector-plugins/{kind}/config"): Call("viewer", "server"),
    ("PUT", "/kc/connector-plugins/{kind}/config/validate"): Call("admin", "made", KAFKA | {"name": "{name}"}),
    ("GET", "/kc/admin/loggers"): Call("viewer", "server"),
    ("GET", "/kc/admin/loggers/{name}"): Call("viewer", "server"),
    ("PUT", "/kc/admin/loggers/{name}"): Call("admin", "server", {"level": "INFO"}),
    **{("GET", f"/api/v1{path}"): Call("viewer", "server") for path in _NATIVE_SERVER},
    **{("GET", f"/api/v1{path}"): Call("viewer", "all") for path in ("/connectors", "/health", "/status", "/lag")},
    **{("GET", f"{_NATIVE}{path}"): Call("viewer") for path in _NATIVE_READ},
    ("GET", f"{_NATIVE}/lag"): Call("viewer", "one", None, 503),
    ("GET", f"{_NATIVE}/plan"): Call("viewer", "one", None, 503),
    ("GET", f"{_NATIVE}/runs/{{run}}/log"): Call("viewer", "one", None, 404),
    ("GET", f"{_NATIVE}/offsets/history"): Call("viewer"),
    ("GET", f"{_NATIVE}/trace"): Call("viewer", "one", None, 422),
    ("GET", f"{_NATIVE}/newest"): Call("admin", "one", None, 503),
    ("GET", f"{_NATIVE}/groups/{{group}}"): Call("viewer", "one", None, 503),
    ("POST", f"{_NATIVE}/groups/{{group}}/apply"): Call("admin", "one", None, 503),
    ("GET", "/api/v1/topics/newest"): Call("admin", "one", None, 422),
    ("POST", f"{_NATIVE}/rules/try"): Call("admin", "one", {"last": 1}, 422),
    ("POST", "/api/v1/try"): Call("admin", "made", {"document": {"name": "{name}"}}, 422),
    ("GET", f"{_NATIVE}/dead-letters/{{number}}"): Call("admin", "one", None, 404),
    ("GET", f"{_NATIVE}/runs/{{run}}"): Call("viewer", "one", None, 404),
    ("GET", "/api/v1/operations"): Call("viewer", "all"),
    **{("GET", f"{_OPERATION}{path}"): Call("viewer", "one", None, 404) for path in ("", "/events")},
    ("DELETE", _OPERATION): Call("operator", "one", None, 404),
    ("POST", f"{_NATIVE}/runs"): Call("operator", "one", None, 202),
    ("POST", f"{_NATIVE}/verifications"): Call("operator", "one", None, 202),
    ("POST", f"{_NATIVE}/backfills"): Call("admin", "one", {"from": "2h"}, 202),
    ("POST", f"{_NATIVE}/dead-letters/replays"): Call("admin", "one", None, 202),
    ("POST", f"{_NATIVE}/dead-letters/replays/preview"): Call("admin"),
    ("PUT", _NATIVE): Call("admin", "made", {"version": 1}, 428),
    ("DELETE", _NATIVE): Call("admin"),
    ("PUT", f"{_NATIVE}/rules"): Call("admin", "made", {"rules": []}, 428),
    **{("POST", f"{_NATIVE}/{verb}"): Call("operator") for verb in ("pause", "resume", "stop")},
    ("POST", f"{_NATIVE}/snapshots"): Call("operator", "one", {"tables": []}, 503),
    ("POST", f"{_NATIVE}/snapshots/cancel"): Call("operator", "one", {"tables": []}, 503),
    ("PATCH", f"{_NATIVE}/offsets"): Call("admin", "one", {"offsets": {"a": 1}}, 409),
    ("POST", f"{_NATIVE}/offsets/undo"): Call("admin", "one", {"partition": "a", "before": 0}, 409),
    ("GET", f"{_NATIVE}/offsets/export"): Call("admin", "one", None, 422),
    ("POST", f"{_NATIVE}/offsets/import"): Call("admin", "one", {"exported": EXPORTED}, 409),
    ("GET", f"{_NATIVE}/backfills"): Call("viewer"),
    ("GET", f"{_NATIVE}/backfills/{{number}}"): Call("viewer", "one", None, 404),
    ("POST", f"{_NATIVE}/backfills/{{number}}/cancel"): Call("admin", "one", None, 404),
    ("POST", f"{_NATIVE}/backfills/{{number}}/resume"): Call("admin", "one", None, 404),
    **{
        ("POST", f"{_NATIVE}/dead-letters/{verb}"): Call("admin", "one", {})
        for verb in ("discard", "erase", "redirect")
    },
    ("GET", f"{_NATIVE}/dead-letters/export"): Call("admin"),
    ("POST", "/api/v1/plugins/reload"): Call("operator", "server"),
    ("POST", "/api/v1/check"): Call("admin", "made", {"documents": [{"name": "{name}"}]}, 422),
    ("POST", "/api/v1/apply"): Call("admin", "made", {"documents": [{"name": "{name}"}]}, 422),
}
"""By method and path. `code` is what an admin is answered."""


@pytest.fixture
def there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    """A ledger with one connector. Operations come to nothing."""
    monkeypatch.setattr(operations, "_command", lambda number: ("true",))
    flat_connectors.create(HIDDEN, ROCKETMQ, lambda _: None)
    with Ledger.open(f"sqlite:///{folder / '.waybill' / 'ledger.db'}") as ledger:
        yield ledger


Token = dict[str, str]


def token(name: str, role: str, pattern: str = "*") -> Token:
    """As a header."""
    with storing() as opened:
        return {"Authorization": f"Bearer {access.create(opened, name, role, connectors=[pattern])['token']}"}


@pytest.fixture(scope="module")
def server() -> Iterator[httpx.URL]:
    """One for all tests: it looks for its ledger at each request."""
    with served(gets_change=True, login=True) as client:
        yield client.base_url


@pytest.fixture
def client(server: httpx.URL, there: Ledger) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server, trust_env=False, verify=False) as client:
        yield client


def routes(of: Iterable[BaseRoute], prefix: str = "") -> Iterator[tuple[str, str]]:
    for route in of:
        if isinstance(route, Mount):
            yield from routes(route.routes, prefix + route.path)
        elif isinstance(route, Route):
            yield from ((method, prefix + route.path) for method in (route.methods or set()) - {"HEAD"})


def asked(client: httpx.Client, shown: Token, method: str, path: str, connector: str) -> httpx.Response:
    call = CALLS[method, path]
    named = {"task": "0", "kind": CLASS, "connectorName": connector, "name": connector, "run": "r", "system": "file"}
    named |= {"number": connector, "group": "g"}
    if "loggers" in path:
        named["name"] = "connect_core"
    body = with_name(call.body, connector)
    if path == "/plugin/config/validate":
        body = {**(body or {}), "name": connector}
    if method == "GET" and body is not None:
        return client.get(path.format(**named), params={"config": json.dumps(body)}, headers=shown)
    return client.request(method, path.format(**named), json=body, headers=shown)


def with_name(body: Any, connector: str) -> Any:
    if isinstance(body, dict):
        return {key: with_name(value, connector) for key, value in body.items()}
    if isinstance(body, list):
        return [with_name(value, connector) for value in body]
    return body.format(name=connector) if isinstance(body, str) else body


def words(answer: httpx.Response, connector: str) -> tuple[int, str]:
    return answer.status_code, answer.text.replace(connector, "NAME")


def standing(ledger: Ledger) -> tuple[Connector, int]:
    found = ledger.connector(HIDDEN)
    return found, len(ledger.audit(found.uid))


def test_every_route_is_in_the_table() -> None:
    assert set(routes(made(gets_change=True).routes)) == CALLS.keys()


@pytest.mark.parametrize(("method", "path"), CALLS)
def test_a_route_asks_for_its_role(client: httpx.Client, method: str, path: str, there: Ledger) -> None:
    call, before = CALLS[method, path], standing(there)
    by_role = {role: token(role, role) for role in ROLES}
    for role in ROLES[: ROLES.index(call.needs)]:
        answer = asked(client, by_role[role], method, path, HIDDEN)
        assert answer.status_code == 403, role
        assert f"Token {role} has the role {role}, and this needs {call.needs}" in answer.text
        assert asked(client, by_role[role], method, path, UNKNOWN).status_code in (403, 404)
        assert standing(there) == before
    answer = asked(client, by_role[call.needs], method, path, HIDDEN)
    assert answer.status_code == call.code, answer.text
    assert asked(client, by_role["admin"], method, path, HIDDEN).status_code not in (401, 403, 500)


@pytest.mark.parametrize(("method", "path"), CALLS)
def test_to_another_team_a_connector_is_not_there(client: httpx.Client, method: str, path: str, there: Ledger) -> None:
    call, before, outsider = CALLS[method, path], standing(there), token("outsider", "admin", "team-a-*")
    answer = asked(client, outsider, method, path, HIDDEN)
    assert words(answer, HIDDEN) == words(asked(client, outsider, method, path, UNKNOWN), UNKNOWN)
    if call.about == "made":
        assert answer.status_code == 403
        assert "is for connectors named team-a-*, and not for 'payroll'" in answer.text
    if call.about in ("all", "server"):
        assert answer.status_code == 200
        assert HIDDEN not in answer.text
    assert standing(there) == before


@pytest.mark.parametrize("query", ["plan?sample=1", "trace?key=a", "trace?source_key=a", "trace?when=x&from=2h"])
def test_what_tells_of_contents_is_for_an_admin(client: httpx.Client, there: Ledger, query: str) -> None:
    path = f"/api/v1/connectors/{HIDDEN}/{query}"
    for role in ROLES:
        answer = client.get(path, headers=token(role, role))
        assert (answer.status_code == 403) == (role != "admin"), answer.text


def test_who_may_see_only_some_changes_only_these(client: httpx.Client, there: Ledger) -> None:
    flat_connectors.create("team-a-in", ROCKETMQ | {"filename": "b"}, lambda _: None)
    client.headers.update(token("ours", "admin", "team-a-*"))
    assert client.post("/connectors/pause/all").json()["body"] == "1 connectors are suspended"
    assert client.get("/kc/connectors").json() == ["team-a-in"]
    assert client.get("/connectors/list").json()["body"].keys() == {"team-a-in"}
    assert 'connector="team-a-in"' in client.get("/metrics").text
    assert (there.connector(HIDDEN).target_state, there.connector("team-a-in").target_state) == ("running", "paused")
    assert client.post("/connectors/team-a-out", json=ROCKETMQ | {"filename": "c"}).json()["status"] == 200


@pytest.mark.parametrize("name", ["\ud800", "a\nb", "ä", "*", "team-a-\x00", "x" * 10_000])
def test_a_name_may_be_any_text(client: httpx.Client, there: Ledger, name: str) -> None:
    client.headers.update(token("ours", "admin", "team-a-*"))
    body = json.dumps(ROCKETMQ | {"name": name})
    for method, path in (
        ("POST", "/plugin/config/validate"),
        ("PUT", f"/kc/connector-plugins/{CLASS}/config/validate"),
    ):
        answer = client.request(method, path, content=body)
        assert answer.status_code in (200, 400, 403), answer.text
        assert name.startswith("team-a-") or answer.status_code in (400, 403)
