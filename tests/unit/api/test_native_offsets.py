"""Offsets that are put back as they were, by Waybill's own API."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tests.unit.api.native import client, create, got, moved, places, problem, server

__all__ = ["client", "server"]
ONE = "/connectors/copy"


@pytest.fixture
def ran(client: httpx.Client, folder: Path) -> httpx.Client:
    """After a run, whose last offset is 14."""
    create(client)
    moved()
    return client


def test_a_move_by_hand_is_undone_once_it_is_paused(ran: httpx.Client) -> None:
    [before] = got(ran, f"{ONE}/offsets")["offsets"]
    asked = {"partition": before["partition"]}
    problem(ran.post(f"{ONE}/offsets/undo", json=asked), 409, "still-runs")
    nothing = problem(ran.post(f"{ONE}/offsets/undo", json={**asked, "preview": True}), 422, "invalid")
    assert nothing["detail"] == "There is no change of this offset to undo"
    ran.post(f"{ONE}/pause")
    problem(ran.post(f"{ONE}/offsets/undo", json=asked), 422, "invalid")
    ran.patch(f"{ONE}/offsets", json={"offsets": {before["partition"]: 0}})
    preview = ran.post(f"{ONE}/offsets/undo", json={**asked, "preview": True}).json()
    assert (preview["applied"], preview["before"]["offset"], preview["after"]["offset"]) == (False, 0, 14)
    assert (preview["undone"]["built_on"], preview["repeats"]["records"]) == (0, 0)
    assert got(ran, f"{ONE}/offsets")["offsets"][0]["offset"] == 0
    key = {"Idempotency-Key": "once"}
    done = ran.post(f"{ONE}/offsets/undo", json=asked, headers=key).json()
    assert (done["applied"], done["after"]) == (True, preview["after"])
    assert ran.post(f"{ONE}/offsets/undo", json=asked, headers=key).json() == done
    assert got(ran, f"{ONE}/offsets")["offsets"][0]["offset"] == 14
    again = ran.post(f"{ONE}/offsets/undo", json={**asked, "preview": True}).json()
    assert (again["after"]["offset"], again["repeats"]["records"]) == (0, 3)


def test_an_undo_names_a_partition_that_there_is(ran: httpx.Client) -> None:
    ran.post(f"{ONE}/pause")
    told = problem(ran.post(f"{ONE}/offsets/undo", json={"partition": "nothing"}), 422, "invalid")
    assert 'no partition "nothing"' in told["detail"]
    assert places(ran.post(f"{ONE}/offsets/undo", json={}), 400, "malformed") == ["partition"]
