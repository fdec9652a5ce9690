"""Offsets that are put back as they were, and that another ledger takes over, by Waybill's own API."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tests.unit.api.native import client, create, got, moved, places, problem, server

__all__ = ["client", "server"]
ONE = "/connectors/copy"
EXPORTED = {"partition": "a", "incarnation": 0, "offset": 0, "evidence": {}}


@pytest.fixture
def ran(client: httpx.Client, folder: Path) -> httpx.Client:
    """After a run, whose last offset is 14."""
    create(client)
    moved()
    return client


def test_a_move_by_hand_is_undone_once_it_is_paused(ran: httpx.Client) -> None:
    [before] = got(ran, f"{ONE}/offsets")["offsets"]
    asked = {"partition": before["partition"], "before": 14}
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
    for other, shown in ((1, "1"), (None, "at the beginning")):
        told = problem(ran.post(f"{ONE}/offsets/undo", json={**asked, "before": other}), 412, "stale")
        assert told["detail"] == f"The offset was moved since: it is 0 now, and not {shown}; nothing was changed"
        assert "preview" in told["next_step"]
    asked["before"] = preview["before"]["offset"]
    key = {"Idempotency-Key": "once"}
    done = ran.post(f"{ONE}/offsets/undo", json=asked, headers=key).json()
    assert (done["applied"], done["after"]) == (True, preview["after"])
    assert ran.post(f"{ONE}/offsets/undo", json=asked, headers=key).json() == done
    assert got(ran, f"{ONE}/offsets")["offsets"][0]["offset"] == 14
    problem(ran.post(f"{ONE}/offsets/undo", json=asked), 412, "stale")
    del asked["before"]
    assert places(ran.post(f"{ONE}/offsets/undo", json=asked), 400, "malformed") == ["before"]
    again = ran.post(f"{ONE}/offsets/undo", json={**asked, "preview": True}).json()
    assert (again["after"]["offset"], again["repeats"]["records"]) == (0, 3)


def test_an_undo_names_a_partition_that_there_is(ran: httpx.Client) -> None:
    ran.post(f"{ONE}/pause")
    told = problem(ran.post(f"{ONE}/offsets/undo", json={"partition": "nothing", "before": 0}), 422, "invalid")
    assert 'no partition "nothing"' in told["detail"]
    assert places(ran.post(f"{ONE}/offsets/undo", json={}), 400, "malformed") == ["partition"]


def test_what_was_exported_is_imported_all_or_none(ran: httpx.Client, folder: Path) -> None:
    told = got(ran, f"{ONE}/offsets/export")
    exported, (one,) = told["exported"], told["exported"]["offsets"]
    assert (exported["connector"], one["offset"], told["notices"]) == ("copy", 14, [])
    asked = {"exported": exported, "why": "moved house"}
    create(ran, "b", source={"file": {"path": "logs/a.log"}})
    problem(ran.get("/connectors/b/offsets/export"), 422, "invalid")
    problem(ran.post("/connectors/b/offsets/import", json=asked), 409, "still-runs")
    ran.post("/connectors/b/stop")
    preview = ran.post("/connectors/b/offsets/import", json={**asked, "preview": True}).json()
    assert (preview["applied"], preview["after"]) == (False, {one["partition"]: 14})
    assert preview["repeats"][one["partition"]]["records"] == 0
    assert [at["offset"] for at in got(ran, "/connectors/b/offsets")["offsets"]] == [0]
    seen = {**asked, "before": {one["partition"]: 4}}
    problem(ran.post("/connectors/b/offsets/import", json=seen), 412, "stale")
    asked["before"] = preview["before"]
    done = ran.post("/connectors/b/offsets/import", json=asked).json()
    assert done == {key: value for key, value in preview.items() if key != "repeats"} | {"applied": True}
    assert got(ran, "/connectors/b/offsets/export")["exported"]["offsets"] == [one]
    (folder / "logs" / "a.log").write_text("another file\n")
    del asked["before"]
    told = problem(ran.post("/connectors/b/offsets/import", json=asked), 422, "invalid")
    assert "is not what it was" in told["detail"]


def test_before_guards_each_offset_that_is_moved_or_is_refused(client: httpx.Client, folder: Path) -> None:
    (folder / "logs" / "b.log").write_text("one\ntwo\n")
    create(client)
    moved()
    client.post(f"{ONE}/pause")
    stands = got(client, f"{ONE}/offsets")["offsets"]
    one, other = sorted(at["partition"] for at in stands)
    at = {partition["partition"]: partition["offset"] for partition in stands}
    exported = got(client, f"{ONE}/offsets/export")["exported"]
    both = {"offsets": {one: 0, other: 0}}
    for asked, before, faults in (
        ({"offsets": {one: 0}}, {"a.log": at[one]}, ['names "a.log", which is not moved', f'leaves out "{one}"']),
        ({"offsets": {one: 0}}, {f"{one}x": 0}, [f"did you mean {one}?", f'leaves out "{one}"']),
        ({"offsets": {one: 0}}, {one: at[one], other: at[other]}, [f'names "{other}", which is not moved']),
        (both, {one: at[one]}, [f'leaves out "{other}", which is moved']),
        (both, {}, [f'leaves out "{one}"', f'leaves out "{other}"']),
    ):
        answer = client.patch(f"{ONE}/offsets", json={**asked, "before": before})
        told = problem(answer, 422, "invalid")
        assert [one["path"] for one in told["errors"]] == ["before"] * len(faults)
        assert all(fault in one["message"] for fault, one in zip(faults, told["errors"], strict=True)), told["errors"]
    for before in ({"a.log": at[one]}, {one: at[one]}):
        answer = client.post(f"{ONE}/offsets/import", json={"exported": exported, "before": before})
        assert set(places(answer, 422, "invalid")) == {"before"}
    assert got(client, f"{ONE}/offsets")["offsets"] == stands
    assert places(client.patch(f"{ONE}/offsets", json={**both, "before": None}), 400, "malformed") == ["before"]
    assert client.patch(f"{ONE}/offsets", json={**both, "before": at}).status_code == 200


@pytest.mark.parametrize("evidence", [{}, {"size": "x"}, {"head": 1, "inode": []}, {"a": {"b": None}}])
def test_evidence_that_no_export_has_given_fails_nothing_in_the_server(ran: httpx.Client, evidence: object) -> None:
    ran.post(f"{ONE}/pause")
    exported = got(ran, f"{ONE}/offsets/export")["exported"]
    exported["offsets"][0]["evidence"] = evidence
    for given in (exported, exported | {"offsets": [exported["offsets"][0] | {"incarnation": 7}]}):
        assert ran.post(f"{ONE}/offsets/import", json={"exported": given, "preview": True}).status_code in (200, 422)


def test_evidence_whose_fields_are_of_other_kinds_is_no_unexpected_error(ran: httpx.Client) -> None:
    ran.post(f"{ONE}/pause")
    exported = got(ran, f"{ONE}/offsets/export")["exported"]
    [one] = exported["offsets"]
    for name in one["evidence"]:
        others = [{**one["evidence"], name: wrong} for wrong in ([], {}, None, 1.5, "x")]
        for evidence in (*others, {key: value for key, value in one["evidence"].items() if key != name}):
            given = {**exported, "offsets": [{**one, "evidence": evidence}]}
            answer = ran.post(f"{ONE}/offsets/import", json={"exported": given, "preview": True})
            assert answer.status_code < 500, (name, evidence)


def test_what_is_no_export_is_refused_by_its_place(ran: httpx.Client) -> None:
    for given, place in (
        ({"version": 2, "connector": "c", "offsets": [EXPORTED]}, "exported.version"),
        ({"version": 1, "connector": "c", "offsets": []}, "exported.offsets"),
        ({"version": 1, "connector": "c", "offsets": [EXPORTED, EXPORTED]}, "exported.offsets"),
        ({"version": 1, "connector": "c", "offsets": [EXPORTED | {"offset": 1 << 63}]}, "exported.offsets[0].offset"),
    ):
        assert place in places(ran.post(f"{ONE}/offsets/import", json={"exported": given}), 400, "malformed")
