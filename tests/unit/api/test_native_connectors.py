"""Connectors by Waybill's own API: documents in and out, changes only of what the caller has seen."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from connect_core.api.guarding import MAX_BYTES
from connect_core.config.references import MASK
from tests.unit.api.native import client, create, document, got, places, problem, server

__all__ = ["client", "server"]
ONE = "/connectors/copy"


def test_a_document_goes_in_and_comes_out_as_it_is_applied(client: httpx.Client) -> None:
    answer = client.put(ONE, json=document())
    assert (answer.status_code, answer.headers["etag"]) == (201, '"1"')
    assert (answer.json()["change"], answer.json()["revision"]) == ("created", 1)
    shown = client.get(ONE)
    assert shown.headers["etag"] == '"1"'
    changed = client.put(ONE, json=shown.json() | {"description": "one"}, headers={"If-Match": '"1"'})
    assert (changed.status_code, changed.headers["etag"]) == (200, '"2"')
    assert changed.json()["difference"] == ["+ description: one"]
    same = client.put(ONE, json=client.get(ONE).json(), headers={"If-Match": '"2"'})
    assert (same.json()["change"], same.headers["etag"]) == ("unchanged", '"2"')


def test_the_name_may_be_left_to_the_address_and_no_other_is_taken(client: httpx.Client) -> None:
    nameless = {key: value for key, value in document().items() if key != "name"}
    assert client.put(ONE, json=nameless).json()["name"] == "copy"
    assert places(client.put("/connectors/other", json=document()), 422, "invalid") == ["name"]


def test_no_change_is_made_of_what_nobody_has_seen(client: httpx.Client) -> None:
    create(client)
    told = problem(client.put(ONE, json=document()), 428, "revision-needed")
    assert "If-Match" in told["next_step"]
    told = problem(client.put(ONE, json=document(), headers={"If-None-Match": "*"}), 412, "stale")
    assert "already" in told["detail"]
    client.put(ONE, json=document(description="first"), headers={"If-Match": '"1"'})
    for tag in ('"1"', 'W/"2"', '"other"', '"0", "3"'):
        told = problem(client.put(ONE, json=document(), headers={"If-Match": tag}), 412, "stale")
        assert "revision 2 is the newest" in told["detail"]
    assert client.put(ONE, json=document(), headers={"If-Match": '"7", "2"'}).json()["revision"] == 3
    assert places(client.put(ONE, json=document(), headers={"If-Match": "2"}), 400, "malformed") == ["If-Match"]
    wrong = client.put(ONE, json=document(), headers={"If-None-Match": '"2"'})
    assert places(wrong, 400, "malformed") == ["If-None-Match"]


def test_what_is_not_there_is_not_created_by_a_change_of_it(client: httpx.Client) -> None:
    for tag in ('"1"', "*"):
        problem(client.put(ONE, json=document(), headers={"If-Match": tag}), 412, "stale")
    assert client.put(ONE, json=document(), headers={"If-None-Match": "*"}).status_code == 201
    assert client.put(ONE, json=document(tasks=2), headers={"If-Match": "*"}).json()["revision"] == 2


def test_of_changes_at_the_same_moment_one_is_made(client: httpx.Client) -> None:
    create(client)

    def change(number: int) -> int:
        answer = client.put(ONE, json=document(description=f"{number}"), headers={"If-Match": '"1"'})
        return answer.status_code

    with ThreadPoolExecutor(8) as pool:
        codes = sorted(pool.map(change, range(8)))
    assert codes == [200] + [412] * 7
    assert len(got(client, f"{ONE}/history")["revisions"]) == 2


def test_every_fault_of_a_document_is_told_at_its_place(client: httpx.Client) -> None:
    wrong = document(tasks="x") | {"sink": {"file": {"pth": 1}}}
    assert {"tasks", "sink.file.path", "sink.file.pth"} <= set(places(client.put(ONE, json=wrong), 422, "invalid"))
    create(client)
    told = problem(client.put("/connectors/b", json=document("b") | {"sink": document()["sink"]}), 422, "invalid")
    [fault] = told["errors"]
    assert fault["path"] == "sink.file.path"
    assert "connector copy" in fault["message"]


def test_a_mask_that_was_shown_is_no_value(client: httpx.Client) -> None:
    masked = document() | {"source": {"mqtt": {"host": "h", "password": MASK}}}
    assert places(client.put(ONE, json=masked), 422, "invalid") == ["source.mqtt.password"]


@pytest.mark.parametrize("body", [b"", b"{", b"[1]", b'"a"', b'{"a": "\\ud800"}', b'{"a": NaN}', b"[" * 100_000])
def test_what_is_no_document_is_refused(client: httpx.Client, body: bytes) -> None:
    answer = client.put(ONE, content=body, headers={"content-type": "application/json"})
    problem(answer, 400, "malformed")


def test_a_body_that_is_too_long_is_a_problem_too(client: httpx.Client) -> None:
    problem(client.put(ONE, content=b" " * (MAX_BYTES + 1)), 413, "too-long")


def test_lists_come_in_pages_by_name(client: httpx.Client) -> None:
    for name in ("b", "a", "c", "other"):
        create(client, name)
    client.post("/connectors/b/pause")
    seen, after = list[str](), ""
    while after is not None:
        told = got(client, "/connectors", limit=3, after=after)
        seen += [one["name"] for one in told["connectors"]]
        after = told["after"]
    assert seen == ["a", "b", "c", "other"]
    assert [one["name"] for one in got(client, "/connectors", name="[ab]")["connectors"]] == ["a", "b"]
    assert [one["name"] for one in got(client, "/connectors", state="paused")["connectors"]] == ["b"]
    first = got(client, "/connectors", state="new", limit=1)
    assert [one["name"] for one in got(client, "/connectors", state="new", after=first["after"])["connectors"]] == [
        "c",
        "other",
    ]


@pytest.mark.parametrize(("key", "value"), [("limit", "0"), ("limit", "501"), ("limit", "x")])
def test_a_page_has_500_entries_at_most(client: httpx.Client, key: str, value: str) -> None:
    assert places(client.get("/connectors", params={key: value}), 400, "malformed") == [key]


@pytest.mark.parametrize("after", ["x", "W10=", "WzFd", "é", "bnVsbA==", "WyJhIiwgImIiXQ=="])
def test_a_page_that_no_list_has_given_is_refused(client: httpx.Client, after: str) -> None:
    create(client)
    assert places(client.get("/connectors", params={"after": after}), 422, "invalid") == ["after"]


def test_a_connector_is_paused_resumed_stopped_and_deleted(client: httpx.Client) -> None:
    create(client)
    for verb, state in (("pause", "paused"), ("resume", "running"), ("stop", "stopped")):
        assert client.post(f"{ONE}/{verb}").json()["state"] == state
    assert got(client, f"{ONE}/status")["state"] == "stopped"
    problem(client.delete(ONE, headers={"If-Match": '"2"'}), 412, "stale")
    assert client.delete(ONE, headers={"If-Match": '"1"'}).json()["deleted"] is True
    assert create(client)["revision"] == 1
    assert client.delete(ONE).status_code == 200


@pytest.mark.parametrize(
    ("method", "path"),
    [
        *(("GET", part) for part in ("", "/status", "/history", "/rules", "/runs", "/receipts", "/gaps", "/lag")),
        *(("GET", part) for part in ("/offsets", "/dead-letters", "/runs/r")),
        *(("POST", part) for part in ("/pause", "/resume", "/stop")),
        ("DELETE", ""),
    ],
)
def test_what_is_not_there_is_not_found(client: httpx.Client, method: str, path: str) -> None:
    told = problem(client.request(method, f"/connectors/none{path}"), 404, "not-found")
    assert (told["detail"], told["next_step"]) == ("Connector none not found", "GET /api/v1/connectors")


def test_what_is_not_there_names_the_one_that_was_meant(client: httpx.Client) -> None:
    create(client)
    told = problem(client.get("/connectors/copi/status"), 404, "not-found")
    assert told["next_step"] == "Did you mean 'copy'? GET /api/v1/connectors"


def test_revisions_say_who_made_them_the_newest_first(client: httpx.Client) -> None:
    create(client)
    client.put(ONE, json=document(tasks=2), headers={"If-Match": '"1"'})
    first = got(client, f"{ONE}/history", limit=1)
    [newest] = first["revisions"]
    assert (newest["revision"], newest["who"], newest["why"]) == (2, "ann", "by the REST API")
    [oldest] = got(client, f"{ONE}/history", after=first["after"])["revisions"]
    assert oldest["revision"] == 1


def test_rules_are_put_as_a_whole(client: httpx.Client) -> None:
    create(client)
    rules = [{"name": "hot", "when": "$.temp > 30"}, {"name": "rest"}]
    problem(client.put(f"{ONE}/rules", json={"rules": rules}), 428, "revision-needed")
    seen = client.put(
        f"{ONE}/rules", params={"preview": True}, json={"rules": rules}, headers={"If-Match": '"1"'}
    ).json()
    assert (seen["applied"], seen["revision"], client.get(f"{ONE}/rules").json()["rules"]) == (False, 1, [])
    told = client.put(f"{ONE}/rules", json={"rules": rules, "why": "a test"}, headers={"If-Match": '"1"'})
    assert (told.status_code, told.headers["etag"], told.json()["rules"]) == (200, '"2"', rules)
    shown = client.get(f"{ONE}/rules")
    assert (shown.json()["rules"], shown.headers["etag"]) == (rules, '"2"')
    problem(client.put(f"{ONE}/rules", json={"rules": []}, headers={"If-Match": '"1"'}), 412, "stale")
    wrong = [{"name": "hot", "when": "> >"}, {"name": "hot", "wen": "1"}]
    found = places(client.put(f"{ONE}/rules", json={"rules": wrong}, headers={"If-Match": '"2"'}), 422, "invalid")
    assert any(one.startswith("rules") for one in found)
    assert got(client, f"{ONE}/history")["revisions"][0]["why"] == "a test"
    assert client.put(f"{ONE}/rules", json={"rules": []}, headers={"If-Match": '"2"'}).json()["rules"] == []
    problem(client.put("/connectors/none/rules", json={"rules": []}), 404, "not-found")


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "/nothing", 404), ("GET", "/x/y", 404), ("PATCH", ONE, 405)]
)
def test_what_is_no_route_is_a_problem(client: httpx.Client, method: str, path: str, status: int) -> None:
    problem(client.request(method, path), status, {404: "no-route", 405: "no-method"}[status])


def test_pages_of_other_sites_are_refused_with_a_problem(client: httpx.Client) -> None:
    problem(client.get("/connectors", headers={"Origin": "http://evil.example"}), 403, "not-allowed")
    problem(client.get("/connectors/a%2fb"), 404, "no-route")


def test_the_character_nul_is_refused_before_a_database_sees_it(client: httpx.Client) -> None:
    create(client)
    for path in ("/runs?stream=%00", "/runs/%00/log", "%00", "/dead-letters/export?run=a%00"):
        problem(client.get(f"{ONE}{path}"), 400, "malformed")
    answer = client.post(f"{ONE}/dead-letters/discard", json={"reason": "a\0"})
    assert places(answer, 400, "malformed") == ["reason"]


def test_what_was_inferred_can_be_put_again(client: httpx.Client, folder: Path) -> None:
    (folder / "logs" / "a.log").write_text('{"a": 1}\n{"a": 2}\n')
    create(client, parse={"format": "json", "fields": "infer"}, encode={"format": "json"})
    shown = client.get(ONE)
    again = client.put(ONE, json=shown.json(), headers={"If-Match": shown.headers["etag"]})
    assert (again.status_code, again.json()["change"]) == (200, "unchanged"), again.text
