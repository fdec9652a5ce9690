"""Plans, logs, the history of offsets, single records, and what records would become, by Waybill's own API."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

from tests.unit.api.native import client, create, document, got, moved, places, problem, server

__all__ = ["client", "server"]
ONE = "/connectors/copy"


@pytest.fixture
def ran(client: httpx.Client, folder: Path) -> httpx.Client:
    """After one run, and with a line more in the source."""
    (folder / "logs" / "a.log").write_text("one\ntwo\n")
    create(client)
    moved()
    with (folder / "logs" / "a.log").open("a") as file:
        file.write("three\n")
    return client


def test_a_plan_says_what_the_next_run_would_move(ran: httpx.Client) -> None:
    told = got(ran, f"{ONE}/plan")
    assert (told["lag"], told["unit"], [one["begin"] for one in told["partitions"]]) == (6, "bytes", [8])
    assert "sample" not in told
    sample = ran.get(f"{ONE}/plan", params={"sample": 1})
    assert [one["value"] for one in sample.json()["sample"]] == ["three"]
    assert sample.headers["cache-control"] == "no-store"


def test_the_log_of_a_run_that_somebody_began_by_hand_went_to_where_it_was_begun(ran: httpx.Client) -> None:
    [run] = got(ran, f"{ONE}/runs")["runs"]
    told = got(ran, f"{ONE}/runs/{run['id']}/log")
    assert (told["run"], told["state"], told["dag"], told["attempts"]) == (run["id"], "done", None, [])
    problem(ran.get(f"{ONE}/runs/é/log"), 404, "not-found")


def test_the_history_of_offsets_is_that_of_a_partition_and_a_stream(ran: httpx.Client) -> None:
    moved()
    partition = got(ran, f"{ONE}/offsets")["offsets"][0]["partition"]
    newest, oldest = got(ran, f"{ONE}/offsets/history", partition=partition)["history"]
    assert (oldest["after"]["offset"], newest["after"]["offset"], newest["kind"]) == (8, 14, "settled")
    assert got(ran, f"{ONE}/offsets/history", limit=1)["history"] == [newest]
    for other in ({"partition": "another"}, {"stream": "backfill:x"}):
        assert got(ran, f"{ONE}/offsets/history", **other)["history"] == []


def test_a_record_is_followed_by_its_place(ran: httpx.Client) -> None:
    partition = got(ran, f"{ONE}/offsets")["offsets"][0]["partition"]
    [record] = got(ran, f"{ONE}/trace", source=f"{partition}:4")["records"]
    assert (record["offset"], [one["begin"] for one in record["ranges"]]) == (4, [0])
    for place in (f"{partition}:{'9' * 19}", f"{partition}:{'9' * 5_000}", "another:4", "no place"):
        problem(ran.get(f"{ONE}/trace", params={"source": place}), 422, "invalid")


def test_records_are_found_by_what_they_hold(ran: httpx.Client, folder: Path) -> None:
    with (folder / "logs" / "a.log").open("a") as file:
        file.write('{"n": 9}\n')
    partition = got(ran, f"{ONE}/offsets")["offsets"][0]["partition"]
    told = got(ran, f"{ONE}/trace", when="$.n = 9", range=f"{partition}:0-23")
    assert ([one["offset"] for one in told["records"]], told["searched"]["read"]) == ([14], 4)
    for end in ("9" * 5_000, "x"):
        problem(ran.get(f"{ONE}/trace", params={"when": "$.n = 9", "range": f"{partition}:0-{end}"}), 422, "invalid")
    far = ran.get(f"{ONE}/trace", params={"when": "$.n = 9", "range": f"{partition}:0-{'9' * 30}"})
    assert far.status_code < 500


@pytest.mark.parametrize("asked", [{}, {"source": "a:1", "key": "b"}, {"source": "a:1", "from": "2h"}, {"to": "2h"}])
def test_one_record_is_named(ran: httpx.Client, asked: dict[str, str]) -> None:
    problem(ran.get(f"{ONE}/trace", params=asked), 422, "invalid")


def test_what_stands_last_in_the_target_is_shown(ran: httpx.Client) -> None:
    answer = ran.get(f"{ONE}/newest", params={"last": 1})
    assert (answer.json(), answer.headers["cache-control"]) == (
        {"name": "copy", "messages": [{"value": "two"}]},
        "no-store",
    )
    for last in (0, 1_001, "x"):
        problem(ran.get(f"{ONE}/newest", params={"last": last}), 400, "malformed")


def test_a_document_is_tried_and_not_stored(client: httpx.Client, folder: Path) -> None:
    (folder / "logs" / "a.log").write_text("one\ntwo\n")
    told = client.post("/try", json={"document": document(), "last": 1}).json()
    assert (told["document"], [one["value"] for one in told["records"]]) == ("copy", ["two"])
    problem(client.get(ONE), 404, "not-found")
    assert "sink.file.pth" in places(
        client.post("/try", json={"document": document(sink={"file": {"pth": "x"}})}), 422, "invalid"
    )
    problem(client.post("/try", json={"document": {}}), 422, "invalid")
    for wrong in ({"last": 0}, {"payload": "\ud800"}, {"headers": [["a"]]}, {"lst": 1}):
        body = json.dumps({"document": document(), **wrong})
        answer = client.post("/try", content=body, headers={"Content-Type": "application/json"})
        problem(answer, 400, "malformed")


def test_rules_are_tried(ran: httpx.Client) -> None:
    assert "has no rules" in problem(ran.post(f"{ONE}/rules/try"), 422, "invalid")["detail"]


def test_no_answer_with_payloads_is_kept(client: httpx.Client, folder: Path) -> None:
    (folder / "logs" / "a.log").write_text("one\n")
    asked, key = {"document": document(), "last": 1}, {"Idempotency-Key": "once"}
    assert [one["value"] for one in client.post("/try", json=asked, headers=key).json()["records"]] == ["one"]
    (folder / "logs" / "a.log").write_text("one\ntwo\n")
    again = client.post("/try", json=asked, headers=key)
    assert ("idempotent-replayed" in again.headers, again.json()["records"][0]["value"]) == (False, "two")


def test_groups_are_those_of_rocketmq(ran: httpx.Client) -> None:
    for asked in (ran.get(f"{ONE}/groups/billing"), ran.post(f"{ONE}/groups/billing/apply")):
        assert "has consumer groups" in problem(asked, 422, "invalid")["detail"]


def test_a_topic_is_where_a_connection_leads(client: httpx.Client, folder: Path) -> None:
    problem(client.get("/topics/newest", params={"topic": "orders"}), 503, "unreachable")
    unknown = problem(client.get("/topics/newest", params={"topic": "orders", "connection": "other"}), 422, "invalid")
    assert "other" in unknown["detail"]
    assert places(client.get("/topics/newest"), 422, "invalid") == ["topic"]
    problem(client.get("/topics/newest", params={"topic": "a", "last": 0}), 400, "malformed")
