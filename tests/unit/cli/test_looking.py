"""Commands that look: plan, lag, offsets, receipts, runs, gaps, dead letters, status, doctor, db, dev, engine, peek."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from connect_core.ledger import Ledger
from connect_core.sdk.values import Reject
from tests.unit.cli.conftest import Waybill
from tests.unit.cli.moves import moved

READING = [
    ("connectors", "list"),
    ("connectors", "show", "copy"),
    ("plan", "copy"),
    ("lag",),
    ("lag", "copy"),
    ("runs",),
    ("runs", "copy"),
    ("receipts",),
    ("receipts", "copy"),
    ("gaps",),
    ("offsets", "show", "copy"),
    ("offsets", "history", "copy"),
    ("dead-letters", "list", "copy"),
    ("status",),
    ("doctor",),
    ("db", "check"),
    ("dev", "status"),
    ("peek", "copy"),
    ("options", "file"),
]


def _ledger(folder: Path) -> Ledger:
    return Ledger.open(f"sqlite:///{folder}/.waybill/ledger.db")


@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_each_speaks_json_and_to_people(words: tuple[str, ...], waybill: Waybill, applied: Path) -> None:
    (applied / "out" / "copy.txt").write_text("zero\n")
    moved(_ledger(applied), "copy", applied, records=3)
    for_people, for_scripts = waybill(*words), waybill(*words, "--json")
    assert for_people.code == for_scripts.code == 0, for_people.err + for_scripts.err
    assert isinstance(for_scripts.json, dict)
    assert for_people.out.strip()


@pytest.mark.parametrize(
    "words",
    [words for words in READING if words[0] not in ("status", "doctor", "options", "peek")] + [("run", "copy")],
    ids=" ".join,
)
def test_reading_commands_never_make_a_home(words: tuple[str, ...], waybill: Waybill, folder: Path) -> None:
    typed = waybill(*words)
    assert typed.code == 3
    assert "`waybill dev up`" in typed.err
    assert not (folder / ".waybill").exists()


def test_plan_says_what_would_move_and_writes_nothing(waybill: Waybill, applied: Path) -> None:
    told = waybill("plan", "copy", "--json").json
    assert told["window_s"] == 0
    assert (told["lag"], told["state"]) == (14, "running")
    (partition,) = told["partitions"]
    assert (partition["committed"], partition["begin"], partition["end"]) == (None, 0, 14)
    assert not (applied / "out" / "copy.txt").exists()
    assert waybill("runs", "--json").json == {"runs": []}


def test_receipts_are_flat_and_complete(waybill: Waybill, applied: Path) -> None:
    run_id = moved(_ledger(applied), "copy", applied, records=3)
    (receipt,) = waybill("receipts", "copy", "--run", run_id, "--json").json["receipts"]
    assert (receipt["begin"], receipt["end"], receipt["read"], receipt["delivered"]) == (0, 14, 3, 3)
    assert receipt["read"] == receipt["filtered"] + receipt["rejected"] + receipt["passed"]
    assert datetime.fromisoformat(receipt["settled_at"]).tzinfo is not None
    assert waybill("receipts", "copy", "--run", "nope", "--json").json == {"receipts": []}
    assert "copy" in waybill("receipts").out


def test_lag_is_what_is_not_settled(waybill: Waybill, applied: Path) -> None:
    moved(_ledger(applied), "copy", applied, records=3)
    with (applied / "logs" / "a.log").open("a") as file:
        file.write("four\n")
    (told,) = waybill("lag", "--json").json["connectors"]
    assert (told["lag"], told["late"], told["silent"]) == (5, False, False)


def test_a_last_line_without_its_line_feed_is_seen_to_wait(waybill: Waybill, applied: Path) -> None:
    """It is no lag: nothing can be moved of it yet."""
    with (applied / "logs" / "a.log").open("a") as file:
        file.write("no end")
    for command, parts in (("lag", waybill("lag", "--json").json["connectors"][0]), ("plan", _planned(waybill))):
        assert (parts["lag"], [part["waiting"] for part in parts["partitions"]]) == (14, [6])
        assert "1 last line has no line feed yet (6 bytes)" in waybill(command, "copy").out
    with (applied / "logs" / "a.log").open("a") as file:
        file.write("\n")
    assert [part["waiting"] for part in _planned(waybill)["partitions"]] == [0]
    assert "line feed" not in waybill("lag", "copy").out


def _planned(waybill: Waybill) -> Any:
    return waybill("plan", "copy", "--json").json


def test_lag_tells_who_is_late(waybill: Waybill, applied: Path) -> None:
    with (applied / "copy.yaml").open("a") as file:
        file.write("alerts: {lag: 1ms, silent: 1ms}\n")
    waybill("apply", "copy.yaml")
    typed = waybill("lag", "copy")
    assert "copy is late: last settled -" in typed.err
    assert "copy is silent: last settled -" in typed.err


def test_one_source_that_does_not_answer_does_not_hide_the_others(waybill: Waybill, applied: Path) -> None:
    (applied / "far.yaml").write_text(
        "version: 1\nname: far\nsource: {rocketmq: {connection: main, topics: [t]}}\nsink: {file: {path: out/f}}\n"
    )
    waybill("apply", "far.yaml")
    typed = waybill("lag", "--json")
    assert typed.code == 3
    copy, far = typed.json["connectors"]
    assert copy["lag"] == 14
    assert "The local stack is not running" in far["problem"]


def test_runs_show_failures(waybill: Waybill, applied: Path) -> None:
    from connect_core.errors import Failure, Unreachable

    with _ledger(applied) as ledger:
        run_id = ledger.begin_run(ledger.connector("copy").uid, "live", task=0, engine="inline")
        failure = Failure.of(Unreachable("the target is away"))
        ledger.end_run(run_id, state="failed", failure=failure, summary={"delivered": 0})
    assert "the target is away" in waybill("runs", "copy").out
    (run,) = waybill("runs", "--json").json["runs"]
    assert (run["connector"], run["id"], run["state"], run["failure"]["kind"]) == (
        "copy",
        run_id,
        "failed",
        "Unreachable",
    )


def test_a_run_that_was_killed_tells_what_it_settled(waybill: Waybill, applied: Path) -> None:
    moved(_ledger(applied), "copy", applied, records=3, ends=False)
    (run,) = waybill("runs", "copy", "--json").json["runs"]
    assert (run["state"], run["summary"], run["delivered"]) == ("running", None, 3)
    assert waybill("runs", "copy").out.splitlines()[-1].split()[-2:] == ["3", "-"]
    with _ledger(applied) as ledger:
        begun = ledger.begin_run(ledger.connector("copy").uid, "live", task=0, engine="inline")
        ledger.end_run(begun, state="done", failure=None, summary={"delivered": 0, "ranges": 0})
    newest, killed = waybill("runs", "copy", "--json").json["runs"]
    assert (killed["state"], killed["delivered"], newest["delivered"]) == ("lost", 3, 0)


def test_dead_letters_show_the_original_only_when_asked(waybill: Waybill, applied: Path) -> None:
    reject = Reject(offset=4, ordinal=0, stage="encode", kind="TooLarge", message="too large", original=b"tw\x1b\xff")
    moved(_ledger(applied), "copy", applied, records=2, rejects=(reject,))
    listed = waybill("dead-letters", "list", "copy", "--json").json["dead_letters"]
    assert [(letter["offset"], letter["stage"], letter["kind"]) for letter in listed] == [(4, "encode", "TooLarge")]
    assert "original" not in listed[0]
    number = str(listed[0]["id"])
    assert waybill("dead-letters", "show", "copy", number, "--json").json["original"] == "tw\x1b\\xff"
    assert "tw\\x1b\\xff" in waybill("dead-letters", "show", "copy", number).out, "no escape reaches the terminal"
    assert waybill("dead-letters", "show", "copy", "99").code == 2


def test_a_list_says_that_there_are_older_ones(waybill: Waybill, applied: Path) -> None:
    rejects = tuple(Reject(offset, 0, "encode", "TooLarge", "too large", b"") for offset in (0, 4))
    moved(_ledger(applied), "copy", applied, records=1, rejects=rejects)
    two = waybill("dead-letters", "list", "copy", "--last", "2", "--json")
    one = waybill("dead-letters", "list", "copy", "--last", "1", "--json")
    assert (len(two.json["dead_letters"]), two.err) == (2, "")
    assert one.json["dead_letters"] == two.json["dead_letters"][:1]
    assert one.err == "Older ones are not shown: --last is 1\n"


def test_a_dead_letter_of_another_connector_is_not_shown(waybill: Waybill, applied: Path) -> None:
    from tests.unit.cli.conftest import DOCUMENT

    reject = Reject(offset=4, ordinal=0, stage="encode", kind="TooLarge", message="too large", original=b"two")
    moved(_ledger(applied), "copy", applied, records=2, rejects=(reject,))
    (applied / "other.yaml").write_text(DOCUMENT.format(name="other"))
    waybill("apply", "other.yaml")
    number = str(waybill("dead-letters", "list", "copy", "--json").json["dead_letters"][0]["id"])
    assert waybill("dead-letters", "show", "other", number).code == 2


def test_peek_shows_the_end_of_a_file(waybill: Waybill, applied: Path) -> None:
    (applied / "out" / "copy.txt").write_bytes(b"one\ntwo\nthr\xffee\n")
    assert waybill("peek", "copy", "--last", "2").out == "two\nthr\\xffee\n"
    told = waybill("peek", "copy", "--last", "1", "--json").json
    assert told == {"name": "copy", "messages": [{"value": "thr\\xffee"}]}


def test_peek_at_a_missing_target_and_without_a_stack(waybill: Waybill, applied: Path) -> None:
    missing = waybill("peek", "copy")
    assert (missing.code, "The file cannot be read" in missing.err) == (3, True)
    away = waybill("peek", "some-topic")
    assert (away.code, "The local stack is not running" in away.err) == (3, True)


def test_status_says_which_home_and_ledger(waybill: Waybill, applied: Path) -> None:
    told = waybill("status", "--json").json
    assert told["home"] == f"{applied}/.waybill"
    assert told["ledger"] == f"sqlite:///{applied}/.waybill/ledger.db"
    assert told["connectors"][0]["name"] == "copy"


def test_status_without_a_home_is_no_failure(waybill: Waybill, folder: Path) -> None:
    typed = waybill("status", "--json")
    assert typed.code == 0
    assert typed.json["home"] is None
    assert "There is no home" in typed.json["problem"]
    assert not (folder / ".waybill").exists()


def test_doctor_finds_misspelt_settings_and_missing_roots(
    waybill: Waybill, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAYBILL_LEASE_TTLS", "3")
    monkeypatch.setenv("WAYBILL_FILES_ROOTS", "gone")
    typed = waybill("doctor", "--json")
    assert typed.code == 2
    told = {finding["subject"]: finding for finding in typed.json["findings"]}
    assert told["environment"]["next_step"] == "Did you mean WAYBILL_LEASE_TTL_S?"
    assert told["files_roots"]["state"] == "fault"


def test_db_check_and_upgrade(waybill: Waybill, folder: Path) -> None:
    (folder / ".waybill").mkdir()
    missing = waybill("db", "check", "--json")
    assert (missing.code, missing.json["current"]) == (2, False)
    assert waybill("db", "upgrade").code == 0
    assert waybill("db", "check", "--json").json["current"] is True


def test_nothing_of_the_stack_runs_here(waybill: Waybill, applied: Path) -> None:
    parts = waybill("dev", "status", "--json").json["parts"]
    assert {part["state"] for part in parts} == {"stopped"}
    engine = waybill("engine", "status", "--json")
    assert (engine.code, engine.json["state"]) == (3, "stopped")
    unknown = waybill("dev", "up", "--only", "kafka")
    assert (unknown.code, "The stack has no part kafka" in unknown.err) == (2, True)


def test_a_run_without_its_engine_says_how_to_start_it(waybill: Waybill, applied: Path) -> None:
    typed = waybill("run", "copy")
    assert typed.code == 3
    assert "`waybill engine start`" in typed.err
    assert waybill("run", "copy", "--engine", "flink").code == 2


def test_a_missing_folder_is_named_and_nothing_counts_as_deleted(waybill: Waybill, applied: Path) -> None:
    """As an unmounted disk is: the source's folder, then the target's."""
    moved(_ledger(applied), "copy", applied, records=3)
    with (applied / "logs" / "a.log").open("a") as log:
        log.write("four\n")
    for name in ("logs", "out"):
        (applied / name).rename(applied / "away")
        for _ in range(2):
            typed = waybill("run", "copy", "--engine", "inline")
            assert (typed.code, f"The folder {applied / name} is missing" in typed.err) == (3, True), typed.err
        (applied / "away").rename(applied / name)
    assert waybill("gaps", "copy", "--json").json["gaps"] == []
    assert f"The folder {applied / 'out'} is missing" in waybill("runs", "copy").out


def test_a_path_outside_of_the_roots_is_told_with_the_line_that_allows_it(waybill: Waybill, applied: Path) -> None:
    document = (applied / "copy.yaml").read_text().replace("logs/*.log", "/srv/logs/*.log")
    (applied / "copy.yaml").write_text(document)
    typed = waybill("check", "copy.yaml")
    assert typed.code == 2
    assert f"export WAYBILL_FILES_ROOTS={applied}:/srv/logs" in typed.err


def test_partitions_that_are_not_simply_active_are_listed_with_since_when_and_why(
    waybill: Waybill, applied: Path
) -> None:
    """One whose line is too long is quarantined, one that was read and deleted has ended, one is named no more."""
    logs, document = applied / "logs", applied / "copy.yaml"
    for name in ("b.log", "c.log", "d.log"):
        (logs / name).write_text(f"{name}\n")
    text = document.read_text().replace("path: logs/*.log", "path: logs/*.log, max_line_bytes: 20")
    document.write_text(text)
    assert waybill("apply", "copy.yaml").code == 0
    assert waybill("run", "copy", "--engine", "inline").code == 0
    (logs / "c.log").unlink()
    with (logs / "b.log").open("a") as file:
        file.write(f"{'x' * 30}\n")
    document.write_text(text.replace("logs/*.log", "'logs/[abc].log'"))
    assert waybill("apply", "copy.yaml").code == 0
    assert waybill("run", "copy", "--engine", "inline").code == 5

    told = {Path(one["partition"]).name: one for one in waybill("connectors", "show", "copy", "--json").json["aside"]}
    assert {name: one["state"] for name, one in told.items()} == {
        "b.log": "quarantined",
        "c.log": "ended",
        "d.log": "retired",
    }
    assert (told["b.log"]["kind"], told["b.log"]["exit_code"]) == ("TooManyRejects", 5)
    assert all(one["since"] and one["reason"] for one in told.values())
    assert "document no longer names it" in told["d.log"]["reason"]
    for words in (("connectors", "show", "copy"), ("plan", "copy"), ("lag", "copy"), ("lag",)):
        shown = waybill(*words).out
        assert all(f"{state} since " in shown for state in ("quarantined", "ended", "retired")), words
        assert "Correct the source" in shown
    rows = {Path(one["partition"]).name: one for one in waybill("plan", "copy", "--json").json["partitions"]}
    assert {name: one["state"] for name, one in rows.items()} == {
        "a.log": "active",
        "b.log": "quarantined",
        "c.log": "ended",
        "d.log": "retired",
    }
    assert {name: one["lag"] for name, one in rows.items()} == {"a.log": 0, "b.log": 31, "c.log": 0, "d.log": None}


def test_a_target_that_keeps_nothing_cannot_be_verified(waybill: Waybill, applied: Path) -> None:
    (applied / "out.yaml").write_text(
        "version: 1\nname: out\nsource: {file: {path: logs/*.log}}\nsink: {mqtt: {host: 127.0.0.1, topic: t}}\n"
    )
    waybill("apply", "out.yaml")
    moved(_ledger(applied), "out", applied, records=3)
    typed = waybill("verify", "out")
    assert typed.code == 2
    assert "cannot be read again" in typed.err


def test_fields_of_a_file_are_suggested_as_a_document_has_them(waybill: Waybill, folder: Path) -> None:
    (folder / "orders.log").write_text('{"id": 1, "at\\u001b": null}\nno JSON\n{"id": 2, "who": {"name": "Zoë"}}\n')
    typed = waybill("fields", "orders.log")
    assert yaml.safe_load(typed.out)["parse"]["fields"] == {"id": "int64", "at\x1b": "text", "who": {"name": "text"}}
    assert "from 2 records; 1 other no JSON object: check what others may have" in typed.err
    assert "at\\x1b: nothing but null was there" in typed.err
    assert waybill("fields", "orders.log", "--last", "1", "--json").json["fields"] == {
        "id": "int64",
        "who": {"name": "text"},
    }
    (folder / "empty.log").touch()
    assert waybill("fields", "empty.log").code == 2
    (missing,) = {waybill("fields", where).err.partition(" [")[0] for where in ("logs/none.log", str(folder))}
    assert missing == "Error: There is no such file"


def test_a_rejected_line_is_traced_to_its_dead_letter_in_a_file_target_too(waybill: Waybill, folder: Path) -> None:
    (folder / "in.log").write_text('{"id": "x"}\n{"id": 1}\n')
    (folder / "typed.yaml").write_text(
        "version: 1\nname: typed\nsource: {file: {path: in.log}}\nsink: {file: {path: out.txt}}\n"
        "parse: {format: json, fields: {id: int64}}\nerrors: {tolerance: all}\n"
    )
    assert waybill("apply", "typed.yaml").code == 0
    assert waybill("run", "typed", "--engine", "inline").code == 0
    [record] = waybill("trace", "typed", "--source", f"{folder / 'in.log'}:0", "--json").json["records"]
    [found] = record["ranges"]
    assert (found["state"], found["places"]) == ("rejected", [])
    assert "in parse: Not of format json: id: not a whole number" in found["what"]
    [record] = waybill("trace", "typed", "--source", f"{folder / 'in.log'}:12", "--json").json["records"]
    assert record["ranges"][0]["state"] == "settled"
