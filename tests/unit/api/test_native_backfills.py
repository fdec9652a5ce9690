"""Backfills and replays that there are, by Waybill's own API."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from connect_core.ledger import Backfill
from connect_core.sdk.records import Partition
from connect_core.sdk.values import Part
from connect_core.service import operations
from connect_core.service.opened import working
from tests.unit.api.native import client, create, got, moved, places, problem, server

__all__ = ["client", "server"]
ONE = "/connectors/copy/backfills"


@pytest.fixture
def begun(client: httpx.Client, folder: Path) -> Callable[[str], str]:
    """Begins one of the first record, which nobody works on: its stream."""
    create(client)
    moved()
    sink = {"path": str(folder / "out" / "again.txt")}
    part = Part(Partition(str(folder / "logs" / "a.log")), 0, 0, 4)

    def begin(number: str) -> str:
        with working() as opened:
            uid = opened.ledger.connector("copy").uid
            wanted = Backfill(uid, f"backfill-{number}", "backfill", 1, {"id": number}, (part,), sink, "ann")
            return opened.ledger.begin_backfill(wanted).stream

    return begin


def test_they_come_in_pages_the_newest_first(client: httpx.Client, begun: Callable[[str], str]) -> None:
    assert got(client, "/connectors/copy/backfills") == {"backfills": [], "after": None}
    streams = [begun(number) for number in ("a", "c", "b")]
    whole = got(client, ONE)["backfills"]
    assert [one["stream"] for one in whole] == streams[::-1]
    assert [(one["done"], one["planned"], one["state"]) for one in whole] == [(0, 4, "running")] * 3
    first = got(client, ONE, limit=2)
    second = got(client, ONE, limit=2, after=first["after"])
    assert (first["backfills"] + second["backfills"], second["after"]) == (whole, None)
    assert got(client, f"{ONE}/backfill-a") == got(client, f"{ONE}/a") == whole[-1]
    assert places(client.get(ONE, params={"after": "x"}), 422, "invalid") == ["after"]


def test_one_is_cancelled_for_good(client: httpx.Client, begun: Callable[[str], str]) -> None:
    begun("a")
    told = client.post(f"{ONE}/a/cancel", json={"why": "too much"}).json()
    assert (told["state"], told["changed"], told["open"]) == ("cancelled", True, [])
    again = client.post(f"{ONE}/a/cancel").json()
    assert again == told | {"changed": False}
    for verb in ("cancel", "resume"):
        told = problem(client.post(f"{ONE}/nothing/{verb}"), 404, "not-found")
        assert told["next_step"] == "GET /api/v1/connectors/copy/backfills"
    problem(client.get(f"{ONE}/nothing"), 404, "not-found")


def test_one_is_gone_on_with_as_an_operation(
    client: httpx.Client, begun: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operations, "_command", lambda number: ("true",))
    stream = begun("a")
    answer = client.post(f"{ONE}/a/resume", headers={"Idempotency-Key": "once"})
    told = answer.json()
    assert (answer.status_code, told["kind"], told["asked"]) == (202, "backfill", {"stream": stream})
    assert answer.headers["Location"] == f"/api/v1/operations/{told['id']}"
    assert client.post(f"{ONE}/a/resume", headers={"Idempotency-Key": "once"}).json() == told
    while (now := got(client, f"/operations/{told['id']}"))["ended_at"] is None:
        pass
    assert now["state"] == "interrupted"
    assert now["problem"]["next_step"] == f"POST /api/v1/connectors/copy/backfills/{stream}/resume: it continues"


def test_what_is_gone_on_with_is_delivered(client: httpx.Client, begun: Callable[[str], str], folder: Path) -> None:
    begun("a")
    told = client.post(f"{ONE}/a/resume").json()
    while (now := got(client, f"/operations/{told['id']}"))["ended_at"] is None:
        pass
    assert now["state"] == "succeeded", now["problem"]
    assert now["result"]["state"] == "done"
    assert got(client, f"{ONE}/a")["done"] == 4
    assert (folder / "out" / "again.txt").read_text() == "one\n"
