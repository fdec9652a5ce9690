"""connectors list, show, pause, resume, restart, stop, delete."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from connect_core.ledger import Ledger
from tests.unit.cli.conftest import Waybill
from tests.unit.cli.moves import moved


def test_list_and_show(waybill: Waybill, applied: Path) -> None:
    (listed,) = waybill("connectors", "list", "--json").json["connectors"]
    assert (listed["name"], listed["state"], listed["source"], listed["schedule"]) == (
        "copy",
        "new",
        "file",
        "manual",
    )
    assert "copy" in waybill("connectors", "list").out
    shown = waybill("connectors", "show", "copy")
    assert f"path: {applied}/logs/*.log" in shown.out


def test_a_document_that_this_version_refuses_does_not_hide_the_others(waybill: Waybill, applied: Path) -> None:
    with closing(Ledger.open(f"sqlite:///{applied}/.waybill/ledger.db")) as ledger:
        document = ledger.connector("copy").document
        ledger.apply("strange", {**document, "name": "strange", "of_another_version": 1}, who="tests")
    told = {one["name"]: one for one in waybill("connectors", "list", "--json").json["connectors"]}
    assert told["copy"]["source"] == "file"
    assert told["strange"]["source"] is None
    assert 'unknown key "of_another_version"' in told["strange"]["problem"]
    listed = waybill("connectors", "list")
    assert (listed.code, "copy" in listed.out, "strange" in listed.out) == (0, True, True)
    assert "strange: The document is not valid" in listed.err


@pytest.mark.parametrize(
    ("verb", "state"), [("pause", "paused"), ("stop", "stopped"), ("resume", "running"), ("restart", "running")]
)
def test_the_verbs_change_the_target_state(verb: str, state: str, waybill: Waybill, applied: Path) -> None:
    typed = waybill("connectors", verb, "copy", "--json")
    assert typed.code == 0
    assert (typed.json["before"], typed.json["state"]) == ("running", state)
    (listed,) = waybill("connectors", "list", "--json").json["connectors"]
    (told,) = waybill("status", "--json").json["connectors"]
    expected = ("new", "on") if state == "running" else (state, state)
    assert (listed["state"], listed["switch"]) == (told["state"], told["switch"]) == expected


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


def test_a_connector_under_a_deleted_name_says_that_it_begins_anew(waybill: Waybill, applied: Path) -> None:
    """Before it does: in the dry run, and above the change itself."""
    with Ledger.open(f"sqlite:///{applied}/.waybill/ledger.db") as ledger:
        former = ledger.connector("copy").uid
        moved(ledger, "copy", applied, records=3)
    assert "starts over" not in waybill("apply", "copy.yaml", "--dry-run").out
    assert waybill("connectors", "delete", "copy", "--yes").code == 0
    dry = waybill("apply", "copy.yaml", "--dry-run")
    assert "starts over: a connector of this name was deleted " in dry.out
    assert "delivered again, into the same target" in dry.out
    told = waybill("apply", "copy.yaml", "--dry-run", "--json").json["connectors"][0]["begins_anew"]
    assert (told["former_uid"], told["same_target"]) == (former, True)
    (applied / "copy.yaml").write_text((applied / "copy.yaml").read_text().replace("out/copy.txt", "out/other.txt"))
    typed = waybill("apply", "copy.yaml")
    assert (typed.code, "delivered again, into another target" in typed.out) == (0, True)
    assert "starts over" not in waybill("apply", "copy.yaml").out


def test_a_deleted_connector_that_moved_nothing_is_not_spoken_of(waybill: Waybill, applied: Path) -> None:
    assert waybill("connectors", "delete", "copy", "--yes").code == 0
    assert "starts over" not in waybill("apply", "copy.yaml").out
