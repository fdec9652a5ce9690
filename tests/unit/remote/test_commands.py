"""Commands by a server, beside the same commands on its ledger: what they print is the same."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import httpx
import pytest

from connect_core.cli.app import app
from connect_core.ledger import Ledger
from connect_core.remote import documents, operations
from connect_core.service.opened import reading
from tests.unit.cli.conftest import DOCUMENT, Waybill, built
from tests.unit.cli.crowd import BACKFILL, NAME, crowded
from tests.unit.cli.crowd import DOCUMENT as PLANT

READS = [
    ("connectors", "list"),
    ("connectors", "show", NAME),
    ("connectors", "show", NAME, "--revisions"),
    ("runs",),
    ("runs", NAME, "--last", "1"),
    ("receipts",),
    ("receipts", NAME, "--last", "2"),
    ("receipts", NAME, "--run", "nothing"),
    ("gaps",),
    ("gaps", NAME),
    ("lag",),
    ("lag", NAME),
    ("offsets", "show", NAME),
    ("offsets", "show", NAME, "--stream", "all"),
    ("offsets", "history", NAME, "--last", "2"),
    ("plan", NAME),
    ("fields", "records.jsonl"),
    ("backfills", "list"),
    ("backfills", "list", NAME),
    ("backfills", "show", NAME, BACKFILL),
    ("dead-letters", "export", NAME, "--to", "-", "--state", "all"),
    ("dead-letters", "list", NAME),
    ("dead-letters", "list", NAME, "1", "3", "--state", "all", "--stage", "transform"),
    ("dead-letters", "show", NAME, "2"),
    ("rules", "list", NAME),
    ("plugins",),
    ("plugins", "mqtt"),
    ("options", "file"),
    ("options", "file", "path"),
    ("options", "connector"),
    ("check", "plant.yaml"),
    ("apply", "plant.yaml", "--dry-run"),
]


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory, empty_ledger: Path) -> Path:
    """The folder of a plant, with what its ledger holds."""

    folder = tmp_path_factory.mktemp("remote-plant")
    (folder / "out").mkdir()
    (folder / ".waybill").mkdir()
    shutil.copy(empty_ledger, folder / ".waybill" / "ledger.db")
    (folder / "plant.yaml").write_text(PLANT)
    (folder / "records.jsonl").write_text('{"a": 1}\n{"a": 2, "b": "x"}\n')
    with pytest.MonkeyPatch.context() as there:
        there.chdir(folder)
        for name in ("WAYBILL_HOME", "WAYBILL_DATABASE_URL"):
            there.delenv(name, raising=False)
        built(app)(["apply", "plant.yaml"], standalone_mode=False)
    crowded(Ledger.open(f"sqlite:///{folder}/.waybill/ledger.db"), folder)
    return folder


@pytest.mark.parametrize("words", READS, ids=" ".join)
@pytest.mark.parametrize("form", ["", "--json"], ids=["text", "json"])
def test_what_is_read_is_the_same(
    waybill: Waybill, remote: Waybill, planted: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], form: str
) -> None:
    monkeypatch.chdir(planted)
    asked = [*words, form] if form else words
    here, there = waybill(*asked), remote(*asked)
    assert (there.code, there.err) == (here.code, here.err)
    assert there.out == here.out
    assert here.code == 0


def test_the_status_has_the_same_connectors(
    waybill: Waybill, remote: Waybill, planted: Path, server: httpx.URL, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(planted)
    here, there = waybill("status").out, remote("status").out
    assert there[there.index("CONNECTOR") :] == here[here.index("CONNECTOR") :]
    assert re.search(rf"^server +{server}$", there, re.MULTILINE)
    assert str(planted) not in there[: there.index("CONNECTOR")]
    told = remote("status", "--json").json
    assert told["connectors"] == waybill("status", "--json").json["connectors"]
    assert (told["ledger"], "home" in told) == ("there", False)


def test_a_record_is_followed_in_the_same_words(waybill: Waybill, remote: Waybill, applied: Path) -> None:
    assert waybill("run", "copy", "--engine", "inline").code == 0
    partition = waybill("offsets", "show", "copy", "--json").json["offsets"][0]["partition"]
    for words in (("--source", f"{partition}:0"), ("--when", "$.n = 1", "--range", f"{partition}:0-"), ()):
        for form in ((), ("--json",)):
            here, there = waybill("trace", "copy", *words, *form), remote("trace", "copy", *words, *form)
            assert (there.code, there.out) == (here.code, here.out), there.err
            assert here.code == (0 if words else 2)


# ------------------------------------------------------------------------------------------------------------- changes


def test_a_connector_from_its_document_to_its_end(waybill: Waybill, remote: Waybill, applied: Path) -> None:
    for verb, before, after in (("pause", "running", "paused"), ("stop", "paused", "stopped")):
        assert remote("connectors", verb, "copy").out == f"copy: {before} -> {after}\n"
    assert remote("connectors", "resume", "copy", "--json").json["state"] == "running"
    (applied / "b.yaml").write_text(DOCUMENT.format(name="b").replace("logs/*.log", "logs/b.log"))
    waybill_says = waybill("apply", "copy.yaml", "b.yaml", "--dry-run").out.replace("would be ", "")
    created = remote("apply", "copy.yaml", "b.yaml", "--why", "more of it")
    assert (created.code, created.out) == (0, waybill_says), created.err
    assert waybill("connectors", "show", "b", "--revisions", "--json").json["revisions"][0]["why"] == "more of it"
    refused = remote("connectors", "delete", "b", answer="n\n")
    assert (refused.code, "Delete connector b (uid" in refused.err) == (1, True)
    assert remote("connectors", "delete", "b", "--yes").out == "b: deleted\n"
    assert [one["name"] for one in waybill("connectors", "list", "--json").json["connectors"]] == ["copy"]


def test_all_documents_of_a_folder_or_none(remote: Waybill, waybill: Waybill, applied: Path) -> None:
    folder = applied / "documents"
    folder.mkdir()
    (folder / "1.yaml").write_text(DOCUMENT.format(name="b").replace("logs/*.log", "logs/b.log"))
    (folder / "2.yaml").write_text("version: 1\nname: c\nsource: {file: {path: logs/c.log}}\nsink: {file: {pth: x}}\n")
    (folder / "3.yaml").write_text("a: [")
    for words in (("apply",), ("apply", "--dry-run"), ("check",)):
        here, there = waybill(*words, folder), remote(*words, folder)
        assert (there.code, sorted(there.err.splitlines())) == (2, sorted(here.err.splitlines()))
        assert "documents/2.yaml: sink.file.pth: line 4" in there.err
    assert [one["name"] for one in waybill("connectors", "list", "--json").json["connectors"]] == ["copy"]


def test_a_fault_names_the_other_document_by_its_file(remote: Waybill, applied: Path) -> None:
    (applied / "again.yaml").write_text(DOCUMENT.format(name="copy"))
    typed = remote("check", "again.yaml", "copy.yaml")
    assert (typed.code, 'copy" is already the name of the document in again.yaml' in typed.err) == (2, True), typed.err
    assert "documents[" not in typed.err


def test_what_is_not_there_says_what_to_do(remote: Waybill, applied: Path) -> None:
    unknown = remote("connectors", "show", "copi")
    said = "Connector copi not found. Did you mean 'copy'? See `waybill connectors list`"
    assert (unknown.code, said in unknown.err) == (2, True), unknown.err
    system = remote("options", "nosuch")
    assert (system.code, 'There is no system "nosuch". `waybill plugins` shows all' in system.err) == (2, True)


def test_nothing_is_applied_over_a_change_that_was_not_seen(
    remote: Waybill, waybill: Waybill, applied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    previewed = documents._previewed

    def overtaken(*given: Any) -> Any:
        seen = previewed(*given)
        (applied / "other.yaml").write_text(DOCUMENT.format(name="copy") + "tasks: 3\n")
        assert waybill("apply", "other.yaml").code == 0
        return seen

    monkeypatch.setattr(documents, "_previewed", overtaken)
    (applied / "copy.yaml").write_text(DOCUMENT.format(name="copy") + "tasks: 2\n")
    refused = remote("apply", "copy.yaml")
    assert (refused.code, "Connector copy was changed since: revision 2 is the newest" in refused.err) == (1, True)
    assert waybill("connectors", "show", "copy", "--json").json["document"]["tasks"] == 3


def test_rules_are_changed_as_here(remote: Waybill, waybill: Waybill, applied: Path) -> None:
    dry = remote("rules", "add", "copy", "hot", "--when", "$.n > 30", "--dry-run")
    assert dry.out.startswith("copy: would be changed, revision 1\n"), dry.err
    assert remote("rules", "list", "copy").out == waybill("rules", "list", "copy").out
    assert remote("rules", "add", "copy", "hot", "--when", "$.n > 30").out.startswith("copy: changed, revision 2\n")
    assert remote("rules", "disable", "copy", "hot").code == 0
    assert "no" in remote("rules", "list", "copy").out
    assert remote("rules", "enable", "copy", "hot", "--json").json["rules"] == [{"name": "hot", "when": "$.n > 30"}]
    wrong = [typed("rules", "set", "copy", "cold", "--when", "x") for typed in (waybill, remote)]
    assert (wrong[0].code, wrong[0].err) == (wrong[1].code, wrong[1].err)
    assert remote("rules", "delete", "copy", "hot").err == "copy: no rule is left: every record passes as it is\n"


def test_an_offset_is_moved_once_somebody_agrees(remote: Waybill, waybill: Waybill, applied: Path) -> None:
    assert remote("run", "copy").code == 0
    before = waybill("offsets", "show", "copy", "--json").json["offsets"][0]
    partition = before["partition"]
    running = remote("offsets", "set", "copy", partition, "0", "--yes")
    assert (running.code, "moved while it is paused or stopped. waybill connectors pause copy" in running.err) == (
        2,
        True,
    )
    remote("connectors", "pause", "copy")
    refused = remote("offsets", "set", "copy", partition, "0")
    assert (refused.code, refused.err) == (2, waybill("offsets", "set", "copy", partition, "0").err)
    assert "delivers 3 records of 1 receipt" in refused.err
    moved = remote("offsets", "set", "copy", partition, "4", "--yes", "--why", "once more", "--json").json
    after = waybill("offsets", "show", "copy", "--json").json["offsets"][0]
    assert (moved["before"], moved["after"]) == (
        {"incarnation": before["incarnation"], "offset": 14},
        {"incarnation": after["incarnation"], "offset": after["offset"]},
    )
    assert after["offset"] == 4
    inside = [typed("offsets", "set", "copy", partition, "1", "--yes") for typed in (waybill, remote)]
    assert (inside[0].code, inside[0].err) == (inside[1].code, inside[1].err)


# ----------------------------------------------------------------------------------------------------------- long work


def test_a_run_is_followed_to_its_end_and_verified(remote: Waybill, waybill: Waybill, applied: Path) -> None:
    ran = remote("run", "copy")
    assert re.match(r"copy: 3 delivered, 0 already in the target; 3 read in 1 range \(\d+\.\d s\)\n", ran.out), ran.err
    assert (ran.code, "the server works on it as operation" in ran.err, "100%, 3 records" in ran.err) == (0, True, True)
    assert remote("run", "copy", "--json").json["ranges"] == 0
    assert remote("verify", "copy").out == waybill("verify", "copy").out
    (applied / "out" / "copy.txt").write_text("one\nTWO\nthree\n")
    here, there = waybill("verify", "copy"), remote("verify", "copy")
    assert (there.code, there.out, here.err in there.err) == (5, here.out, True)
    part = remote("verify", "copy", "--since", "2h", "--share", "50%", "--json")
    assert (part.code, part.out) == (5, waybill("verify", "copy", "--json").out)


def test_a_run_that_airflow_has_begun_is_told(remote: Waybill, applied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = {"connector": "copy", "begun_in": "airflow"}
    monkeypatch.setattr("connect_core.remote.operations.done", lambda *_: begun)
    assert remote("run", "copy").out == "copy: Airflow has begun the run: waybill runs copy\n"
    assert remote("run", "copy", "--json").json == begun


def test_a_backfill_and_why_one_fails(remote: Waybill, waybill: Waybill, applied: Path) -> None:
    remote("run", "copy")
    partition = waybill("offsets", "show", "copy", "--json").json["offsets"][0]["partition"]
    again = applied / "out" / "again.txt"
    told = remote("backfill", "copy", "--range", f"{partition}:0-8", "--sink", f"path={again}")
    assert told.code == 0, told.err
    assert re.search(
        r"^copy: 2 delivered.*\n.*receipts: waybill receipts copy --stream backfill-\S+\ncopy: \S+ is done$",
        told.out,
        re.MULTILINE,
    )
    assert again.read_text() == "one\ntwo\n"
    failed = [typed("backfill", "copy", "--from", "2h") for typed in (waybill, remote)]
    assert failed[0].code == failed[1].code == 2
    assert failed[0].err.splitlines()[-1] == failed[1].err.splitlines()[-1]


def test_dead_letters_are_sent_again_once_somebody_agrees(remote: Waybill, waybill: Waybill, rejected: Path) -> None:
    refused = remote("dead-letters", "replay", "copy")
    assert (refused.code, refused.err) == (2, waybill("dead-letters", "replay", "copy").err)
    typed = remote("dead-letters", "replay", "copy", "--yes")
    assert (typed.code, "copy: 2 delivered" in typed.out) == (0, True), typed.err
    (written,) = (rejected / "out").glob("copy.txt.dead-letters-*")
    assert written.read_text() == "one\ntwo\n"
    here, there = waybill("dead-letters", "replay", "copy", "--yes"), remote("dead-letters", "replay", "copy", "--yes")
    assert (there.code, there.out, there.err) == (here.code, here.out, here.err)


def test_who_leaves_a_run_ends_it(remote: Waybill, applied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def left(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(operations, "_followed", left)
    typed = remote("run", "copy")
    assert (typed.code, "is cancelled" in typed.err) == (130, True)
    with reading() as opened:
        [stored] = opened.ledger.operations()
    assert stored.state == "cancelled"


@pytest.mark.parametrize(("words", "code"), [(("backfill", "copy", "--range", ":-"), 2), (("run", "copy"), 0)])
def test_what_somebody_has_ended_ends_as_it_does_here(
    words: tuple[str, ...], code: int, remote: Waybill, applied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backfill that was called off has no result; a run that was paused tells what it has moved."""
    over: dict[str, Any] = {"connector": "copy", "id": "1", "state": "cancelled", "result": None}
    over["problem"] = {"detail": "It was ended", "kind": "ConfigError"}
    over["result"] = {"connector": "copy", "ranges": 0, "seconds": 1.0, "tasks": []} if code == 0 else None
    monkeypatch.setattr("connect_core.service.operations._watched", lambda *_: None)
    monkeypatch.setattr(operations, "_followed", lambda *_: over)
    typed = remote(*words)
    assert (typed.code, "It was ended" in typed.err) == (code, True), typed.err
