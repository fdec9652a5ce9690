"""Several documents at once by Waybill's own API, and what there is to know of its server."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from connect_core import __version__
from tests.unit.api.native import client, create, document, got, places, problem, server

__all__ = ["client", "server"]


def test_documents_are_judged_and_nothing_is_stored(client: httpx.Client, folder: Path) -> None:
    told = client.post("/check", json={"documents": [document("a"), document("b")]}).json()
    assert told["valid"] is True
    assert [one["name"] for one in told["documents"]] == ["a", "b"]
    assert told["documents"][0]["guarantee"]["delivery"] == "exactly once"
    assert not (folder / ".waybill").exists()
    probed = client.post("/check", json={"documents": [document("a")], "probe": True}).json()
    assert all(one["ok"] for one in probed["documents"][0]["probe"])


@pytest.mark.parametrize("path", ["/check", "/apply", "/apply?preview=true"])
def test_every_fault_of_all_documents_is_told_at_once(client: httpx.Client, path: str) -> None:
    wrong = [document("a", tasks="x"), 3, document("c") | {"sink": {"file": {}}}]
    found = places(client.post(path, json={"documents": wrong}), 422, "invalid")
    assert {"documents[0].tasks", "documents[1]", "documents[2].sink.file.path"} <= set(found)
    assert places(client.post(path, json={"documents": []}), 422, "invalid") == ["documents"]
    assert places(client.post(path, json={"documents": {}}), 400, "malformed") == ["documents"]
    assert places(client.post(path, json={"documents": [], "force": 1}), 400, "malformed") == ["force"]
    assert got(client, "/connectors")["connectors"] == []


def test_documents_are_applied_all_or_none(client: httpx.Client) -> None:
    create(client, "a")
    both = {"documents": [document("a", description="new"), document("b")], "why": "a test"}
    preview = client.post("/apply", params={"preview": True}, json=both).json()
    assert (preview["applied"], [one["change"] for one in preview["connectors"]]) == (False, ["changed", "created"])
    assert [one["name"] for one in got(client, "/connectors")["connectors"]] == ["a"]
    told = client.post("/apply", json=both).json()
    assert told["applied"] is True
    assert [one["revision"] for one in told["connectors"]] == [2, 1]
    assert got(client, "/connectors/b/history")["revisions"][0]["why"] == "a test"
    twice = {"documents": [document("c"), document("c") | {"sink": document("d")["sink"]}]}
    problem(client.post("/apply", json=twice), 422, "invalid")
    assert len(got(client, "/connectors")["connectors"]) == 2


def test_systems_and_their_options_are_told(client: httpx.Client) -> None:
    listed = got(client, "/plugins")["plugins"]
    there = {(one["kind"], one["name"]): one for one in listed}
    assert {("source", "file"), ("sink", "file"), ("format", "avro"), ("transform", "cast")} <= there.keys()
    [path] = [one for one in there["source", "file"]["options"] if one["name"] == "path"]
    assert (path["required"], path["importance"], path["type"]) == (True, "high", "path")
    assert client.post("/plugins/reload").json() == {"reloaded": [], "broken": []}
    assert "path" in [one["name"] for one in got(client, "/plugins/file")["options"]]
    problem(client.get("/plugins/nothing"), 404, "not-found")


def test_the_server_says_how_it_is_and_what_it_is(client: httpx.Client) -> None:
    assert got(client, "/health") == {"ledger": "none yet", "connectors": {}}
    create(client)
    assert got(client, "/health") == {"ledger": "there", "connectors": {"new": 1}}
    assert got(client, "/version")["version"] == __version__


def test_a_ledger_that_cannot_be_asked_is_a_problem(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAYBILL_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")
    problem(client.get("/health"), 503, "unreachable")


@pytest.mark.parametrize("name", [{"file": {}}, [], [None], 3, None, True])
@pytest.mark.parametrize("path", ["/check", "/apply"])
def test_a_name_that_is_no_text_is_a_fault_like_any_other(client: httpx.Client, path: str, name: object) -> None:
    create(client)
    documents = [document("a") | {"name": name}]
    assert places(client.post(path, json={"documents": documents}), 422, "invalid") == ["documents[0].name"]


@pytest.mark.timeout(60)
def test_no_number_of_tasks_keeps_the_server_busy(client: httpx.Client) -> None:
    for tasks in (1001, 1 << 40, 1 << 62):
        answer = client.post("/check", json={"documents": [document("a", tasks=tasks)]})
        assert places(answer, 422, "invalid") == ["documents[0].tasks"]


def test_nothing_is_applied_where_one_revision_is_another_now(client: httpx.Client) -> None:
    create(client, "a")
    create(client, "b", source={"file": {"path": "logs/b"}})
    both = [document("a", tasks=2), document("b", tasks=2, source={"file": {"path": "logs/b"}})]
    seen = client.post("/apply", params={"preview": True}, json={"documents": both}).json()["connectors"]
    made_from = {one["name"]: one["made_from"] for one in seen}
    assert made_from == {"a": 1, "b": 1}
    for wrong in ({"a": 1, "b": 2}, {"a": 0}):
        told = problem(client.post("/apply", json={"documents": both, "made_from": wrong}), 412, "stale")
        assert "was changed since: revision 1 is the newest" in told["detail"]
    assert [one["revision"] for one in got(client, "/connectors")["connectors"]] == [1, 1]
    done = client.post("/apply", json={"documents": both, "made_from": made_from}).json()
    assert [one["revision"] for one in done["connectors"]] == [2, 2]


def test_all_connectors_are_told_at_once(client: httpx.Client) -> None:
    assert (got(client, "/status")["connectors"], got(client, "/lag")["connectors"]) == ([], [])
    create(client)
    [told] = got(client, "/status")["connectors"]
    assert (told["name"], told["state"], told["gaps"], told["last_settled"]) == ("copy", "new", 0, None)
    assert [one["connector"] for one in got(client, "/lag")["connectors"]] == ["copy"]
    assert {one["name"] for one in got(client, "/plugins/connector")["options"]} > {"name", "tasks"}
