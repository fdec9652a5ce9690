"""Runs, receipts, gaps, lag, offsets and dead letters by Waybill's own API."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from connect_core.ledger import task_lease_id
from connect_core.replication.driver.prepare import holder
from connect_core.sdk.values import LIVE
from connect_core.service.opened import working
from tests.unit.api.native import client, create, got, moved, places, problem, server

__all__ = ["client", "server"]
ONE = "/connectors/copy"


@pytest.fixture
def ran(client: httpx.Client, folder: Path) -> httpx.Client:
    """After three runs, of which each has one receipt."""
    create(client)
    for number in range(3):
        with (folder / "logs" / "a.log").open("a") as file:
            file.write(f"more {number}\n")
        moved()
    return client


@pytest.mark.parametrize(("path", "key", "place"), [("runs", "runs", "id"), ("receipts", "receipts", "range")])
def test_lists_come_in_pages_the_newest_first(ran: httpx.Client, path: str, key: str, place: str) -> None:
    whole = [one[place] for one in got(ran, f"{ONE}/{path}")[key]]
    assert whole == sorted(whole, reverse=True)
    assert len(whole) == 3
    seen, after = list[object](), ""
    while after is not None:
        told = got(ran, f"{ONE}/{path}", limit=2, after=after)
        seen += [one[place] for one in told[key]]
        after = told["after"]
    assert seen == whole


def test_a_run_is_told_with_its_receipts_added_up(ran: httpx.Client) -> None:
    oldest = got(ran, f"{ONE}/runs")["runs"][-1]
    told = got(ran, f"{ONE}/runs/{oldest['id']}")
    assert (told["state"], told["delivered"], told["total"]["delivered"], told["total"]["ranges"]) == ("done", 4, 4, 1)
    create(ran, "b")
    for one in ("nothing", "é"):
        problem(ran.get(f"{ONE}/runs/{one}"), 404, "not-found")
    problem(ran.get(f"/connectors/b/runs/{oldest['id']}"), 404, "not-found")


def test_receipts_are_those_of_a_partition_or_of_a_run(ran: httpx.Client) -> None:
    newest, *_ = got(ran, f"{ONE}/receipts")["receipts"]
    assert got(ran, f"{ONE}/receipts", run=newest["run"])["receipts"] == [newest]
    assert len(got(ran, f"{ONE}/receipts", partition=newest["partition"])["receipts"]) == 3
    assert got(ran, f"{ONE}/receipts", partition="another")["receipts"] == []
    assert got(ran, f"{ONE}/receipts", stream="backfill:x")["receipts"] == []


def test_what_waits_is_told_by_partition(ran: httpx.Client, folder: Path) -> None:
    assert got(ran, f"{ONE}/lag")["lag"] == 0
    with (folder / "logs" / "a.log").open("a") as file:
        file.write("again\n")
    told = got(ran, f"{ONE}/lag")
    assert (told["lag"], told["unit"], told["partitions"][0]["lag"]) == (6, "bytes", 6)


def test_offsets_that_another_request_moves_are_busy(ran: httpx.Client) -> None:
    """The connector is paused, and no run is at work: that request holds the lease of the task."""
    [before] = got(ran, f"{ONE}/offsets")["offsets"]
    ran.post(f"{ONE}/pause")
    with working() as opened:
        uid = opened.ledger.connector("copy").uid
        version = opened.ledger.assignment(uid).version
        lease_id = task_lease_id(uid, LIVE, version, 0)
        seen = opened.ledger.lease(lease_id)
        lease = opened.ledger.take(lease_id, seen, holder(), uid=uid, stream=LIVE, version=version)
    wanted = {"offsets": {before["partition"]: None}}
    told = problem(ran.patch(f"{ONE}/offsets", json=wanted), 409, "busy")
    assert (told["kind"], told["where"]) == ("LeaseHeld", "connector copy")
    assert "no run is at work" in told["detail"]
    assert "was killed, in 30 s at the latest" in told["next_step"]
    with working() as opened:
        opened.ledger.release(lease)
    assert ran.patch(f"{ONE}/offsets", json=wanted).status_code == 200


def test_offsets_are_moved_and_moved_back(ran: httpx.Client) -> None:
    [before] = got(ran, f"{ONE}/offsets")["offsets"]
    partition, at = before["partition"], before["offset"]
    wanted = {"offsets": {partition: None}, "why": "once more"}
    told = problem(ran.patch(f"{ONE}/offsets", json=wanted), 409, "still-runs")
    assert told["next_step"] == "POST /api/v1/connectors/copy/pause"
    preview = ran.patch(f"{ONE}/offsets", params={"preview": True}, json=wanted).json()
    assert (preview["applied"], preview["before"], preview["after"]) == (False, {partition: at}, {partition: 0})
    assert preview["repeats"][partition]["records"] == 6
    assert got(ran, f"{ONE}/offsets")["offsets"] == [before]
    ran.post(f"{ONE}/pause")
    overtaken = problem(ran.patch(f"{ONE}/offsets", json=wanted | {"before": {partition: 4}}), 412, "stale")
    assert (overtaken["detail"].split(";")[0], got(ran, f"{ONE}/offsets")["offsets"]) == (
        f"The offset was moved since: it is {at} now, and not 4",
        [before],
    )
    done = ran.patch(f"{ONE}/offsets", json=wanted | {"before": preview["before"]}).json()
    same = ("connector", "before", "after", "incarnations")
    assert done == {key: preview[key] for key in same} | {"applied": True}
    assert got(ran, f"{ONE}/offsets")["offsets"][0]["offset"] == 0
    undone = ran.patch(f"{ONE}/offsets", json={"offsets": done["before"]}).json()
    assert undone["after"] == {partition: at}
    assert got(ran, f"{ONE}/offsets")["offsets"][0]["offset"] == at


def test_what_is_left_out_by_hand_is_a_gap_in_pages(ran: httpx.Client) -> None:
    [before] = got(ran, f"{ONE}/offsets")["offsets"]
    ran.post(f"{ONE}/stop")
    ran.patch(f"{ONE}/offsets", json={"offsets": {before["partition"]: 0}})
    ran.patch(f"{ONE}/offsets", json={"offsets": {before["partition"]: 4}})
    ran.patch(f"{ONE}/offsets", json={"offsets": {before["partition"]: 8}})
    gaps = got(ran, f"{ONE}/gaps")["gaps"]
    first = got(ran, f"{ONE}/gaps", limit=1)
    assert first["gaps"] == gaps[:1]
    if first["after"]:
        assert got(ran, f"{ONE}/gaps", after=first["after"])["gaps"] == gaps[1:]


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ({}, "offsets"),
        ({"offsets": []}, "offsets"),
        ({"offsets": {"a": -1}}, "offsets.a"),
        ({"offsets": {"a": "1"}}, "offsets.a"),
        ({"offsets": {"a": 1.5}}, "offsets.a"),
        ({"offsets": {"a": 1 << 63}}, "offsets.a"),
        ({"offsets": {"a": 1}, "reason": "x"}, "reason"),
    ],
)
def test_what_names_no_offsets_is_refused(client: httpx.Client, body: object, found: str) -> None:
    create(client)
    assert places(client.patch(f"{ONE}/offsets", json=body), 400, "malformed") == [found]


def test_a_place_where_reading_cannot_go_on_is_refused_and_nothing_moves(ran: httpx.Client) -> None:
    ran.post(f"{ONE}/pause")
    [before] = got(ran, f"{ONE}/offsets")["offsets"]
    assert places(ran.patch(f"{ONE}/offsets", json={"offsets": {}}), 422, "invalid") == ["offsets"]
    for wanted in ({before["partition"]: 1}, {before["partition"]: 0, "nothing": 0}):
        told = problem(ran.patch(f"{ONE}/offsets", json={"offsets": wanted}), 422, "invalid")
        assert "inside a record" in told["detail"] or "no partition" in told["detail"]
    assert got(ran, f"{ONE}/offsets")["offsets"] == [before]


def test_rejected_records_are_listed_in_pages_as_they_are_chosen(client: httpx.Client, folder: Path) -> None:
    (folder / "logs" / "a.log").write_text('{"a": 1}\nno json\nneither\n')
    parse = {"format": "json", "fields": {"a": "int64"}}
    create(client, parse=parse, encode={"format": "json"}, errors={"tolerance": "all"})
    moved()
    whole = got(client, f"{ONE}/dead-letters")["dead_letters"]
    assert [one["stage"] for one in whole] == ["parse", "parse"]
    first = got(client, f"{ONE}/dead-letters", limit=1)
    second = got(client, f"{ONE}/dead-letters", limit=1, after=first["after"])
    assert first["dead_letters"] + second["dead_letters"] == whole
    assert second["after"] is None
    assert got(client, f"{ONE}/dead-letters", stage="write")["dead_letters"] == []
    assert got(client, f"{ONE}/dead-letters", id=whole[1]["id"])["dead_letters"] == whole[1:]
    shown = got(client, f"{ONE}/dead-letters/{whole[1]['id']}")
    assert (shown["id"], shown["original"]) == (whole[1]["id"], "no json")
    for number in ("0x1", "9" * 30, "-1"):
        problem(client.get(f"{ONE}/dead-letters/{number}"), 404, "not-found")
    told = client.post(f"{ONE}/dead-letters/replays/preview", json={"ids": [whole[1]["id"]]}).json()
    assert (told["letters"], [one["stage"] for one in told["counts"]], told["resumed"]) == (1, ["parse"], [])
    assert got(client, f"{ONE}/dead-letters")["dead_letters"] == whole
    assert "no json" not in client.get(f"{ONE}/dead-letters").text
    wrong = client.get(f"{ONE}/dead-letters", params={"since": "soon", "state": "lost"})
    assert places(wrong, 422, "invalid") == ["since", "state"]
