"""Committed offsets go from one ledger to another, and the records behind them come once."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.unit.cli.conftest import DOCUMENT, Waybill

KEY = "logs/a.log"


def moved(waybill: Waybill) -> None:
    assert waybill("run", "copy", "--engine", "inline").code == 0


@pytest.fixture
def exported(applied: Path, waybill: Waybill) -> Path:
    """The offsets after three lines; then the ledger is a new one, with the same document."""
    moved(waybill)
    file = applied / "offsets.json"
    file.write_text(waybill("offsets", "export", "copy").out)
    return file


@pytest.fixture
def anew(exported: Path, applied: Path, waybill: Waybill, empty_ledger: Path) -> Path:
    shutil.rmtree(applied / ".waybill")
    (applied / ".waybill").mkdir()
    shutil.copy(empty_ledger, applied / ".waybill" / "ledger.db")
    (applied / "out" / "copy.txt").unlink()
    assert waybill("apply", "copy.yaml").code == 0
    return exported


def test_reading_continues_where_it_was(anew: Path, applied: Path, waybill: Waybill) -> None:
    told = waybill("offsets", "import", "copy", anew, "--why", "another ledger", "--json").json
    [partition] = told["after"]
    assert (told["before"][partition], told["after"][partition], told["kept"]) == (0, 14, [])
    with (applied / "logs" / "a.log").open("a") as file:
        file.write("four\n")
    moved(waybill)
    assert (applied / "out" / "copy.txt").read_text() == "four\n"
    [step] = [one for one in waybill("offsets", "history", "copy", "--json").json["history"] if one["kind"] == "import"]
    assert step["why"] == "another ledger"


def test_a_source_that_was_replaced_is_noticed(anew: Path, applied: Path, waybill: Waybill) -> None:
    (applied / "logs" / "a.log").write_text("other lines\nof another file\n")
    refused = waybill("offsets", "import", "copy", anew)
    assert refused.code in (2, 5), refused.err
    assert "the source is not what it was" in refused.err or "was replaced" in refused.err
    assert [one["offset"] for one in waybill("offsets", "show", "copy", "--json").json["offsets"]] == [0]


@pytest.mark.parametrize("offset", [15, 1_000_000])
def test_what_is_behind_the_end_is_refused(anew: Path, waybill: Waybill, offset: int) -> None:
    anew.write_text(anew.read_text().replace('"offset": 14', f'"offset": {offset}'))
    refused = waybill("offsets", "import", "copy", anew)
    assert refused.code == 2
    assert "of the source, which ends at 14" in refused.err or "would not continue at offset" in refused.err


def test_an_offset_within_a_line_is_refused(anew: Path, applied: Path, waybill: Waybill) -> None:
    with (applied / "logs" / "a.log").open("a") as file:
        file.write("a long line\n")
    anew.write_text(anew.read_text().replace('"offset": 14', '"offset": 17'))
    refused = waybill("offsets", "import", "copy", anew)
    assert refused.code != 0, refused.err


def test_what_would_come_again_needs_a_word(exported: Path, applied: Path, waybill: Waybill) -> None:
    """In the ledger that has moved on."""
    with (applied / "logs" / "a.log").open("a") as file:
        file.write("four\n")
    moved(waybill)
    refused = waybill("offsets", "import", "copy", exported)
    assert (refused.code, "delivers 1 record of 1 receipt" in refused.err) == (2, True), refused.err
    assert waybill("offsets", "import", "copy", exported, "--yes").code == 0
    moved(waybill)
    assert (applied / "out" / "copy.txt").read_text() == "one\ntwo\nthree\nfour\nfour\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "offsets.json"),
        ("[]", "These are no exported offsets"),
        (
            json.dumps(
                {
                    "version": 1,
                    "connector": "copy",
                    "offsets": [{"partition": "a", "incarnation": 0, "offset": 1, "evidence": {}}] * 2,
                }
            ),
            "twice",
        ),
        ('{"version": 2, "connector": "copy", "offsets": []}', "version"),
        ('{"version": 1, "connector": "copy", "offsets": [{"partition": "a", "offset": -1}]}', "offsets.0.offset"),
        (
            json.dumps(
                {
                    "version": 1,
                    "connector": "copy",
                    "offsets": [{"partition": "nowhere", "incarnation": 0, "offset": 1, "evidence": {}}],
                }
            ),
            'no partition "nowhere"',
        ),
    ],
)
def test_what_is_no_export_is_refused(applied: Path, waybill: Waybill, text: str, words: str) -> None:
    (applied / "offsets.json").write_text(text)
    refused = waybill("offsets", "import", "copy", "offsets.json")
    assert refused.code == 2
    assert words in refused.err


def test_a_connector_that_never_ran_has_none(applied: Path, waybill: Waybill) -> None:
    refused = waybill("offsets", "export", "copy")
    assert (refused.code, "Nothing is committed yet" in refused.err) == (2, True)


def test_the_log_of_a_run_by_hand_is_where_it_was_begun(applied: Path, waybill: Waybill) -> None:
    assert "It has not run yet" in waybill("logs", "copy").err
    moved(waybill)
    (run,) = waybill("runs", "copy", "--json").json["runs"]
    told = waybill("logs", "copy")
    assert (told.code, told.out) == (0, "")
    assert f"copy: run {run['id']}, done" in told.err
    assert "begun by hand" in told.err
    assert waybill("logs", "copy", "--run", run["id"], "--json").json["attempts"] == []
    refused = waybill("logs", "copy", "--run", "nothing")
    assert (refused.code, "There is no run nothing" in refused.err) == (2, True)


def test_why_a_run_failed_is_told(applied: Path, waybill: Waybill) -> None:
    (applied / "bad.yaml").write_text(DOCUMENT.format(name="bad").replace("out/bad.txt", "nowhere/bad.txt"))
    assert waybill("apply", "bad.yaml").code == 0
    assert waybill("run", "bad", "--engine", "inline").code != 0
    assert "nowhere" in waybill("logs", "bad").err
