"""The REST routes as Airflow's web server mounts them: who asks, what that user sees, and who is refused."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import Mount

from connect_core.service import documents
from connect_core.service.opened import reading
from tests.unit.airflow.standin import ALL, READ, WORK, AuthManager, User
from tests.unit.cli.conftest import applied, folder, waybill

__all__ = ["applied", "folder", "waybill"]

RIGHTS = AuthManager(
    {("ann", ""): ALL, ("uwe", ""): WORK, ("eve", ""): READ, ("tim", "replicate.mine"): ALL}, {"ann", "tim"}
)
PAUSE = "/waybill/kc/connectors/copy/pause"
Ask = Callable[..., httpx.Response]


@pytest.fixture(scope="module")
def application() -> Starlette:
    """Imported here: Airflow's web server brings libraries that warn of each other."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from connect_core.airflow.plugin import WaybillPlugin

        [given] = WaybillPlugin.fastapi_apps
        application = Starlette(routes=[Mount(given["url_prefix"], given["app"])])
        asked(application, "GET", "/waybill/kc/")  # makes it, while nobody is warned
    return application


@pytest.fixture
def ask(application: Starlette, applied: Any, monkeypatch: pytest.MonkeyPatch) -> Ask:
    from connect_core.airflow import login

    async def known(request: Any, _: None, shown: Any) -> User:
        name = shown.credentials if shown else request.cookies.get("_token")
        if not name or name == "nobody":
            raise HTTPException(401 if not name else 403)
        return User(name)

    monkeypatch.setattr(login, "get_user", known)
    monkeypatch.setattr(login, "get_auth_manager", lambda: RIGHTS)

    def ask(method: str, path: str, user: str = "", *, cookie: str = "", **given: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {user}"} if user else {"Cookie": f"_token={cookie}"} if cookie else {}
        return asked(application, method, path, headers={**headers, **given.pop("headers", {})}, **given)

    return ask


def asked(application: Starlette, method: str, path: str, **given: Any) -> httpx.Response:
    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(application, client=("192.0.2.7", 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://airflow.example") as client:
            return await client.request(method, path, **given)

    return asyncio.run(ask())


@pytest.mark.parametrize(
    "path", ["/connectors/list", "/kc/connectors", "/api/v1/connectors", "/metrics", "/openapi.json", "/nothing"]
)
@pytest.mark.parametrize("user", ["", "nobody"])
def test_without_a_login_nothing_is_answered(ask: Ask, path: str, user: str) -> None:
    answer = ask("GET", f"/waybill{path}", user)
    assert answer.status_code == 401
    assert "Log in to Airflow" in answer.text
    assert answer.headers["www-authenticate"] == "Bearer"


def test_routes_are_below_the_prefix_as_they_are_without_it(ask: Ask) -> None:
    assert ask("GET", "/waybill/connectors/list/", "eve").json()["body"].keys() == {"copy"}
    assert ask("GET", "/waybill/kc", "eve").status_code == 200
    assert ask("GET", "/waybill/kc/connectors", "eve").json() == ["copy"]
    assert "waybill_connectors" in ask("GET", "/waybill/metrics", "eve").text
    assert ask("GET", "/waybill/openapi.json", "eve").json()["servers"] == [{"url": "/waybill"}]
    assert ask("GET", "/waybill/api/v1/openapi.json", "eve").json()["servers"] == [{"url": "/waybill/api/v1"}]
    for path, key in (("/nothing", None), ("/kc/nothing", "error_code"), ("/api/v1/nothing", "status")):
        answer = ask("GET", f"/waybill{path}", "eve")
        assert answer.status_code == 404
        assert key is None or answer.json()[key] == 404
    assert ask("GET", "/waybill/api/v1/connectors/no", "eve").json()["instance"] == "/waybill/api/v1/connectors/no"


def test_what_is_made_is_where_the_answer_says(ask: Ask) -> None:
    config = {"connector.class": "FileStreamSource", "file": "b.log", "topic": "t"}
    made = ask("POST", "/waybill/kc/connectors", "ann", json={"name": "b", "config": config})
    assert (made.status_code, made.headers["location"]) == (201, "/waybill/kc/connectors/b")
    assert ask("GET", made.headers["location"], "ann").json()["name"] == "b"


@pytest.mark.parametrize(("user", "code"), [("eve", 403), ("uwe", 202), ("ann", 202)])
def test_a_change_takes_the_right_to_the_dag(ask: Ask, user: str, code: int) -> None:
    assert ask("PUT", PAUSE, user).status_code == code
    with reading() as opened:
        now = opened.ledger.connector("copy")
        deeds = [one.who for one in opened.ledger.audit(now.uid)]
    assert now.target_state == ("running" if code == 403 else "paused")
    assert (f"airflow user {user} from 192.0.2.7" in deeds) is (code != 403)


def test_a_dag_that_a_user_cannot_read_is_no_connector(ask: Ask, folder: Path) -> None:
    (folder / "mine.yaml").write_text(
        (folder / "copy.yaml").read_text().replace("out/copy", "out/mine").replace("name: copy", "name: mine")
    )
    documents.apply([Path("mine.yaml")], say=lambda _: None)
    assert ask("GET", "/waybill/kc/connectors", "tim").json() == ["mine"]
    for path in ("/kc/connectors/{}", "/api/v1/connectors/{}", "/connectors/{}/status"):
        theirs, none = (ask("GET", f"/waybill{path.format(name)}", "tim") for name in ("copy", "none"))
        assert (theirs.status_code, theirs.text.replace("copy", "none")) == (none.status_code, none.text)
    assert 'connector="copy"' not in ask("GET", "/waybill/metrics", "tim").text
    theirs, none = (ask("DELETE", f"/waybill/kc/connectors/{name}", "tim") for name in ("copy", "none"))
    assert (theirs.status_code, theirs.text.replace("copy", "none")) == (403, none.text)
    assert ask("POST", "/waybill/connectors/pause/all", "tim").json()["body"] == "1 connectors are suspended"
    with reading() as opened:
        assert opened.ledger.connector("copy").target_state == "running"
    assert ask("PUT", "/waybill/kc/connectors/mine/pause", "tim").status_code == 202
    assert ask("DELETE", "/waybill/kc/connectors/mine", "tim").status_code == 204


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ({"Sec-Fetch-Site": "same-origin"}, 202),
        ({"Origin": "http://airflow.example"}, 202),
        ({"Sec-Fetch-Site": "same-origin", "Origin": "http://airflow.example"}, 202),
        ({}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://airflow.example:8081"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "none"}, 403),
        ({"Sec-Fetch-Site": "same-origin", "Origin": "http://evil.example"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Origin": "http://airflow.example"}, 403),
        ({"Authorization": "Basic YTpi"}, 403),
    ],
)
def test_a_cookie_changes_something_for_a_page_of_the_server_alone(ask: Ask, said: dict[str, str], code: int) -> None:
    assert ask("PUT", PAUSE, cookie="ann", headers=said).status_code == code
    with reading() as opened:
        assert opened.ledger.connector("copy").target_state == ("paused" if code == 202 else "running")


def test_a_page_of_another_site_is_not_answered_by_a_token_either(ask: Ask) -> None:
    """Airflow adds one to each request where it knows no users (simple_auth_manager_all_admins)."""
    for method, path in (("GET", "/waybill/kc/connectors"), ("PUT", PAUSE)):
        for said in ({"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
            assert ask(method, path, "ann", headers=said).status_code == 403


def test_a_cookie_reads_and_a_get_changes_nothing(ask: Ask) -> None:
    assert ask("GET", "/waybill/kc/connectors", cookie="eve").json() == ["copy"]
    for path in ("/connectors/stopAll", "/connectors/copy/pause", "/connectors/in"):
        assert ask("GET", f"/waybill{path}", cookie="ann").status_code == 405
    with reading() as opened:
        assert opened.ledger.connector("copy").target_state == "running"


def test_a_ledger_that_does_not_answer_is_503(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAYBILL_DATABASE_URL", "postgresql://me:secret@127.0.0.1:1/ledger")
    for path in ("/connectors/list", "/kc/connectors", "/api/v1/connectors", "/metrics"):
        answer = ask("GET", f"/waybill{path}", "ann")
        assert answer.status_code == 503
        assert "127.0.0.1" not in answer.text
        assert ask("GET", f"/waybill{path}").status_code == 401


def test_no_ledger_has_no_connectors(ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAYBILL_HOME", str(tmp_path / "none"))
    assert ask("GET", "/waybill/kc/connectors", "ann").json() == []


def test_the_plugin_brings_no_web_server_into_other_processes() -> None:
    script = (
        "import sys, airflow.plugins_manager; before = set(sys.modules); import connect_core.airflow.plugin;"
        "new = set(sys.modules) - before;"
        "print(*{one.partition('.')[0] for one in new} - {'airflow', 'connect_core'}, len(new))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    [number] = done.stdout.splitlines()[-1].split()
    assert int(number) < 20
