"""connectors list, show, pause, resume, restart, stop, delete."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.conftest import Waybill


def test_list_and_show(waybill: Waybill, applied: Path) -> None:
    (listed,) = waybill("connectors", "list", "--json").json["connectors"]
    assert (listed["name"], listed["state"], listed["source"], listed["schedule"]) == (
        "copy",
        "running",
        "file",
        "manual",
    )
    assert "copy" in waybill("connectors", "list").out
    shown = waybill("connectors", "show", "copy")
    assert f"path: {applied}/logs/*.log" in shown.out


@pytest.mark.parametrize(
    ("verb", "state"), [("pause", "paused"), ("stop", "stopped"), ("resume", "running"), ("restart", "running")]
)
def test_the_verbs_change_the_target_state(verb: str, state: str, waybill: Waybill, applied: Path) -> None:
    typed = waybill("connectors", verb, "copy", "--json")
    assert typed.code == 0
    assert (typed.json["before"], typed.json["state"]) == ("running", state)
    assert waybill("connectors", "list", "--json").json["connectors"][0]["state"] == state


@pytest.mark.parametrize("state", ["pause", "stop"])
def test_a_connector_that_shall_not_run_is_not_run(state: str, waybill: Waybill, applied: Path) -> None:
    waybill("connectors", state, "copy")
    typed = waybill("run", "copy", "--engine", "inline")
    assert typed.code == 2
    assert "Start it again with `waybill connectors resume copy`" in typed.err


def test_delete_asks_first(waybill: Waybill, applied: Path) -> None:
    assert waybill("connectors", "delete", "copy", answer="n\n").code == 1
    assert len(waybill("connectors", "list", "--json").json["connectors"]) == 1
    assert waybill("connectors", "delete", "copy", answer="y\n").code == 0
    assert waybill("connectors", "list", "--json").json == {"connectors": []}


def test_delete_without_asking_is_pure_json(waybill: Waybill, applied: Path) -> None:
    typed = waybill("connectors", "delete", "copy", "--yes", "--json")
    assert typed.json["deleted"] is True
    assert waybill("apply", "copy.yaml").out.startswith("copy: created")


@pytest.mark.parametrize("verb", ["show", "pause", "resume", "restart", "stop", "delete"])
def test_an_unknown_name_is_told_with_the_nearest(verb: str, waybill: Waybill, applied: Path) -> None:
    typed = waybill("connectors", verb, "cpoy")
    assert typed.code == 2
    assert "'cpoy'" in typed.err
    assert "'copy'" in typed.err
