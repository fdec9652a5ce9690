"""dead-letters list | export | replay | discard as a person types them, with letters of a ledger. No servers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from connect_core.ledger import Ledger
from connect_core.sdk.values import Reject
from tests.unit.cli.conftest import Typed, Waybill
from tests.unit.cli.moves import moved
from tests.unit.cli.test_backfills_elsewhere import _Airflow, airflow
from tests.unit.cli.test_moving_back import asked

__all__ = ["airflow", "asked"]


def reject(offset: int, body: bytes, stage: str = "parse", *, whole: bool = True) -> Reject:
    return Reject(offset, 0, stage, "NotParsed", "no JSON", body, None, {} if whole else None)


@pytest.fixture
def rejected(waybill: Waybill, applied: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`copy` has rejected two of its lines, and one that is kept in part."""
    monkeypatch.setenv("WAYBILL_ENGINE", "inline")
    monkeypatch.setenv("WAYBILL_LEASE_TTL_S", "60")
    monkeypatch.setenv("WAYBILL_QUANTUM_S", "20")
    letters = (reject(0, b"one"), reject(4, b"two", "encode"), reject(8, b"thr", "read", whole=False))
    moved(Ledger.open(f"sqlite:///{applied}/.waybill/ledger.db"), "copy", applied, records=0, rejects=letters)
    return applied


@pytest.fixture
def copied(rejected: Path) -> Path:
    """The folder in which `airflow` runs what it is asked for."""
    return rejected


def test_a_replay_says_which_letters_it_sends_and_which_it_leaves(waybill: Waybill, rejected: Path) -> None:
    refused = waybill("dead-letters", "replay", "copy")
    assert refused.code == 2
    assert "1 dead letter of" in refused.err
    assert "rejected at stage encode (3 bytes)" in refused.err
    assert "1 dead letter left out: kept only in part" in refused.err
    assert "Nothing was changed. Add --yes to confirm" in refused.err
    typed = waybill("dead-letters", "replay", "copy", "--yes")
    assert typed.code == 0, typed.err
    assert "copy: 2 delivered, 0 already in the target; 2 read in 1 range" in typed.out
    (written,) = (rejected / "out").glob("copy.txt.dead-letters-*")
    assert written.read_text() == "one\ntwo\n"
    listed = waybill("dead-letters", "list", "copy", "--json").json["dead_letters"]
    assert [(one["id"], one["stage"]) for one in listed] == [(3, "read")]
    again = waybill("dead-letters", "replay", "copy", "--yes")
    assert "copy: no dead letters to replay" in again.out
    assert "1 dead letter left out: kept only in part" in again.out


@pytest.mark.usefixtures("rejected")
def test_a_person_is_asked(asked: Callable[..., Typed]) -> None:
    typed = asked("n\n", "dead-letters", "discard", "copy", "1")
    assert (typed.code, typed.out.strip(), "Discard them? [y/N]" in typed.err) == (1, "", True)
    typed = asked("y\n", "dead-letters", "discard", "copy", "1")
    assert (typed.code, typed.out.strip()) == (0, "copy: 1 dead letter discarded")
    typed = asked("y\n", "dead-letters", "erase", "copy")
    assert (typed.code, typed.out.strip(), "Erase what they hold? [y/N]" in typed.err) == (
        0,
        "copy: 1 dead letter erased",
        True,
    )


def test_a_replay_runs_in_its_command_where_airflow_runs_connectors(
    waybill: Waybill, airflow: type[_Airflow], rejected: Path
) -> None:
    """The form of Airflow's DAG has no words for it: a filter by run would begin a replay of that run."""
    run = waybill("dead-letters", "list", "copy", "--json").json["dead_letters"][0]["run"]
    typed = waybill("dead-letters", "replay", "copy", "--run", run, "--yes", "--json")
    assert typed.code == 0, typed.err
    assert (typed.json["replays"][0]["delivered"], typed.json["left_out"]) == (2, {"in_part": 1})
    assert airflow.asked == []
    (backfill,) = waybill("backfills", "list", "copy", "--json").json["backfills"]
    assert (backfill["kind"], backfill["asked"]) == ("dead-letters", {"run": run})


def test_an_export_says_where_it_is_and_what_is_not_whole(waybill: Waybill, rejected: Path) -> None:
    typed = waybill("dead-letters", "export", "copy", "--to", "x.jsonl", "--stage", "read")
    assert typed.out == "copy: 1 dead letter exported to x.jsonl\n"
    (line,) = (rejected / "x.jsonl").read_text().splitlines()
    assert (json.loads(line)["whole"], json.loads(line)["payload"]) == (False, {"text": "thr"})
    typed = waybill("dead-letters", "export", "copy", "--to", "-", "3", "2")
    assert [json.loads(line)["id"] for line in typed.out.splitlines()] == [2, 3]
