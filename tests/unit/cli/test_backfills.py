"""backfill, replay and backfills with the inline engine, from file to file. No servers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from connect_core.ledger import Backfill, Connector, Ledger, task_lease_id
from connect_core.sdk.records import Partition
from connect_core.sdk.values import Part, Pins, Range
from connect_core.service.opened import AtWork
from tests.unit.cli.conftest import DOCUMENT, Typed, Waybill
from tests.unit.cli.moves import moved


@pytest.fixture
def copied(waybill: Waybill, applied: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`copy` has moved its three lines."""
    monkeypatch.setenv("WAYBILL_ENGINE", "inline")
    monkeypatch.setenv("WAYBILL_LEASE_TTL_S", "60")  # a loaded machine is slow to start a lane
    monkeypatch.setenv("WAYBILL_QUANTUM_S", "20")
    with ledger_of(applied) as ledger:
        moved(ledger, "copy", applied, records=3)
    return applied


def ledger_of(folder: Path) -> Ledger:
    return Ledger.open(f"sqlite:///{folder}/.waybill/ledger.db")


def test_a_backfill_goes_beside_the_live_target_and_is_told(waybill: Waybill, copied: Path) -> None:
    typed = waybill("backfill", "copy", "--range", "a.log:2-8", "--id", "one", "--why", "a hole", "--json")
    assert typed.code == 0, typed.err
    assert (copied / "out" / "copy.txt.backfill-one").read_text() == "two\n"
    told = typed.json
    assert (told["state"], told["delivered"], told["done"], told["planned"]) == ("done", 1, 4, 4)
    assert waybill("offsets", "show", "copy", "--json").json["offsets"][0]["offset"] == 14
    (listed,) = waybill("backfills", "list", "copy", "--json").json["backfills"]
    assert (listed["stream"], listed["state"], listed["why"]) == ("backfill-one", "done", "a hole")
    assert listed["asked"] == {"ranges": ["a.log:2-8"]}
    assert waybill("backfill", "copy", "--id", "one").out == "copy: backfill-one is done\n"
    assert waybill("backfills", "show", "copy", "one", "--json").json["stream"] == "backfill-one", "its id will do"
    shown = waybill("backfills", "show", "copy", "backfill-one").out
    assert "a hole" in shown
    assert "copy.txt.backfill-one" in shown
    for words in ((), ("--stream", "live"), ("--stream", "backfill-one"), ("--stream", "all")):
        receipts = waybill("receipts", "copy", *words, "--json").json["receipts"]
        streams = {"--stream backfill-one": {"backfill-one"}, "--stream all": {"live", "backfill-one"}}
        assert {one["stream"] for one in receipts} == streams.get(" ".join(words), {"live"})
    assert len(waybill("receipts", "copy", "--run", told["tasks"][0]["run"], "--json").json["receipts"]) == 1
    assert {run["stream"] for run in waybill("runs", "copy", "--json").json["runs"]} == {"live", "backfill-one"}
    assert waybill("runs", "copy", "--stream", "live", "--json").json["runs"][0]["stream"] == "live"


def test_a_backfill_that_is_cancelled_says_what_nobody_knows(waybill: Waybill, copied: Path) -> None:
    """An attempt that was killed has left a range: what it delivered stays in the target without a receipt."""
    with ledger_of(copied) as ledger:
        connector, log = ledger.connector("copy"), Partition(f"{copied}/logs/a.log")
        part = Part(log, 0, 0, 14)
        ledger.begin_backfill(Backfill(connector.uid, "backfill-one", "backfill", 1, {}, (part,), {}, "ann"))
        lease_id = task_lease_id(connector.uid, "backfill-one", 1, 0)
        lease = ledger.take(lease_id, None, "test", uid=connector.uid, stream="backfill-one", version=1)
        run = ledger.begin_run(connector.uid, "backfill-one", task=0, engine="inline")
        wanted = Range("backfill-one", log, 0, 0, 0, 14, 1000, 10**6, {}, Pins(1, "p", {}, "test"))
        ledger.plan([lease], run, connector.uid, 0, [wanted], [])
        ledger.release(lease)
    said = f"{log.key} from 0 to 14 was open: records that it delivered are in the target, without a receipt"
    assert said not in waybill("backfills", "show", "copy", "one").out
    assert said in waybill("backfills", "cancel", "copy", "one").out
    assert said in waybill("backfills", "show", "copy", "one").out


def test_a_run_is_replayed_into_another_file(waybill: Waybill, copied: Path) -> None:
    with ledger_of(copied) as ledger:
        (run,) = ledger.runs()
    typed = waybill("replay", "copy", "--run", run.id, "--sink", "path=out/again.txt")
    assert typed.code == 0, typed.err
    assert (copied / "out" / "again.txt").read_text() == "one\ntwo\nthree\n"
    assert "is done" in typed.out
    assert "  receipts: waybill receipts copy --stream replay-" in typed.out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--from", "2h"), "A file does not say when its lines were written"),
        (("--range", "b.log:0-4"), "there is no partition 'b.log'; there are"),
        (("--range", ":-", "--sink", "path=out/copy.txt"), "the live stream of copy writes to file:"),
        (("--range", ":-", "--sink", "path=logs/b.log"), "is one of the files that the source reads"),
        (("--range", ":-", "--sink", "pth=x", "--sink", "format=y"), 'unknown key "pth"; did you mean path?'),
        (("--id", "one"), "There is no backfill-one of connector copy"),
        ((), "give --from (and --to), --range, or the --id of one to resume"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_stored(
    words: tuple[str, ...], told: str, waybill: Waybill, copied: Path
) -> None:
    typed = waybill("backfill", "copy", *words)
    assert typed.code == 2
    assert told in typed.err
    assert waybill("backfills", "list", "--json").json["backfills"] == []


def test_nothing_to_move_is_no_failure_and_leaves_nothing(waybill: Waybill, copied: Path) -> None:
    typed = waybill("backfill", "copy", "--range", ":14-")
    assert (typed.code, typed.out) == (0, "copy: nothing to move\n")
    assert waybill("backfills", "list").out == "no backfills\n"


def test_two_at_once_have_two_files(waybill: Waybill, copied: Path) -> None:
    """The first has begun, and nobody works on it."""
    with ledger_of(copied) as ledger:
        assert waybill("backfill", "copy", "--range", ":0-4", "--id", "one", "--sink", "path=out/again.txt").code == 0
        uid = ledger.connector("copy").uid
        one = ledger.backfill(uid, "backfill-one")
        assert one is not None
        stored = ledger.begin_backfill(
            type(one)(**{**vars(one), "stream": "backfill-two", "sink": {"path": f"{copied}/out/two.txt"}})
        )
    refused = waybill("backfill", "copy", "--range", ":0-4", "--sink", "path=out/two.txt")
    assert refused.code == 2
    assert f"{stored.stream} of copy writes to file:{copied}/out/two.txt" in refused.err
    assert (
        waybill("backfills", "cancel", "copy", "backfill-two", "--why", "no").out == "copy: backfill-two: cancelled\n"
    )
    assert waybill("backfills", "cancel", "copy", "backfill-two").out == "copy: backfill-two: was cancelled already\n"
    assert waybill("backfills", "resume", "copy", "backfill-two").code == 2
    assert waybill("backfill", "copy", "--range", ":0-4", "--sink", "path=out/two.txt").code == 0


def test_others_words_for_the_same_id_are_refused(waybill: Waybill, copied: Path) -> None:
    assert waybill("backfill", "copy", "--range", ":0-4", "--id", "one").code == 0
    assert waybill("backfill", "copy", "--range", ":0-4", "--id", "one").code == 0
    refused = waybill("backfill", "copy", "--range", ":0-8", "--id", "one")
    assert refused.code == 2
    assert "backfill-one was started with ranges :0-4, not with ranges :0-8" in refused.err


def test_one_that_failed_is_resumed(waybill: Waybill, copied: Path) -> None:
    """The document says since what is tolerated; what is read and where it goes stay as they were."""
    (copied / "out" / "again.txt").write_text("no end of line")
    words = ("backfill", "copy", "--range", ":-", "--sink", "path=out/again.txt", "--id", "one")
    assert waybill(*words).code == 5
    assert waybill("backfills", "show", "copy", "backfill-one", "--json").json["state"] == "failed"
    (copied / "out" / "again.txt").write_text("an end\n")
    (copied / "copy.yaml").write_text((copied / "copy.yaml").read_text().replace("copy.txt", "other.txt"))
    assert waybill("apply", "copy.yaml").code == 0
    typed = waybill("backfills", "resume", "copy", "backfill-one")
    assert typed.code == 0, typed.err
    assert (copied / "out" / "again.txt").read_text() == "an end\none\ntwo\nthree\n"
    assert not (copied / "out" / "other.txt").exists()


def apply_later(waybill: Waybill, folder: Path, target: str, sink_of_letters: str = "") -> Typed:
    """A connector `later`, which has another source, into this file."""
    document = DOCUMENT.format(name="later").replace("logs/", "other/").replace("out/later.txt", target)
    errors = f"errors: {{tolerance: all, sink: {{file: {{path: {sink_of_letters}}}}}}}\n" if sink_of_letters else ""
    (folder / "other").mkdir(exist_ok=True)
    (folder / "other" / "b.log").write_text("four\n")
    (folder / "later.yaml").write_text(document + errors)
    return waybill("apply", "later.yaml")


@pytest.mark.parametrize("target", ["later.txt", "letters.txt"])
def test_the_file_of_a_connector_that_has_not_run_yet_is_its_own(target: str, waybill: Waybill, copied: Path) -> None:
    applied = apply_later(waybill, copied, "out/later.txt", "out/letters.txt")
    assert applied.code == 0, applied.err
    refused = waybill("backfill", "copy", "--range", ":0-4", "--sink", f"path=out/{target}")
    assert refused.code == 2
    assert f"{copied}/out/{target} is also written by connector later" in refused.err
    assert waybill("backfills", "list", "--json").json["backfills"] == []
    assert not (copied / "out" / target).exists()


def test_a_file_that_another_connector_wrote_before_is_refused_before_anything_is_stored(
    waybill: Waybill, copied: Path
) -> None:
    """What that one has begun there it may write again."""
    assert apply_later(waybill, copied, "out/before.txt").code == 0
    assert waybill("run", "later").code == 0
    assert apply_later(waybill, copied, "out/later.txt").code == 0
    refused = waybill("backfill", "copy", "--range", ":0-4", "--sink", "path=out/before.txt")
    assert refused.code == 2
    assert "connector later writes this target, which can have one writer only" in refused.err
    assert waybill("backfills", "list", "--json").json["backfills"] == []


@pytest.mark.parametrize("failed", [False, True], ids=["running", "failed"])
def test_no_connector_takes_the_file_of_a_backfill_that_may_go_on(failed: bool, waybill: Waybill, copied: Path) -> None:
    with ledger_of(copied) as ledger:
        uid = ledger.connector("copy").uid
        part = Part(Partition(f"{copied}/logs/a.log"), 0, 0, 14)
        sink = {"path": f"{copied}/out/again.txt"}
        ledger.begin_backfill(Backfill(uid, "backfill-one", "backfill", 1, {}, (part,), sink, "ann"))
        if failed:
            ledger.end_backfill(uid, "backfill-one", "failed")
    told = (
        f"{copied}/out/again.txt is also written by connector copy in backfill-one, and a file can have one writer "
        "only: give another path, or cancel backfill-one (waybill backfills cancel)"
    )
    refused = apply_later(waybill, copied, "out/again.txt")
    assert (refused.code, told in refused.err) == (2, True)
    (copied / "copy.yaml").write_text(DOCUMENT.format(name="copy").replace("out/copy.txt", "out/again.txt"))
    for command in ("apply", "check"):
        refused = waybill(command, "copy.yaml")
        assert (refused.code, told in refused.err) == (2, True)
    assert apply_later(waybill, copied, "out/more.txt").code == 0
    refused = waybill("backfill", "later", "--range", ":-", "--sink", "path=out/again.txt")
    assert (refused.code, told in refused.err) == (2, True)
    assert waybill("backfills", "cancel", "copy", "one").code == 0
    assert apply_later(waybill, copied, "out/again.txt").code == 0


def test_a_connector_that_comes_while_a_backfill_is_checked_keeps_its_file(
    waybill: Waybill, copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storing = Ledger.begin_backfill

    def behind_another(ledger: Ledger, *given: Any) -> Backfill:
        monkeypatch.setattr(Ledger, "begin_backfill", storing)
        assert apply_later(waybill, copied, "out/new.txt").code == 0
        return storing(ledger, *given)

    monkeypatch.setattr(Ledger, "begin_backfill", behind_another)
    refused = waybill("backfill", "copy", "--range", ":0-4", "--sink", "path=out/new.txt")
    assert (refused.code, "out/new.txt is also written by connector later" in refused.err) == (2, True)
    assert waybill("backfills", "list", "--json").json["backfills"] == []
    assert not (copied / "out" / "new.txt").exists()


def test_a_backfill_that_comes_while_a_document_is_checked_keeps_its_file(
    waybill: Waybill, copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storing = Ledger.apply_all

    def behind_another(ledger: Ledger, *given: Any, **more: Any) -> Any:
        monkeypatch.setattr(Ledger, "apply_all", storing)
        part = Part(Partition(f"{copied}/logs/a.log"), 0, 0, 14)
        uid, sink = ledger.connector("copy").uid, {"path": f"{copied}/out/new.txt"}
        ledger.begin_backfill(Backfill(uid, "backfill-one", "backfill", 1, {}, (part,), sink, "ann"))
        return storing(ledger, *given, **more)

    monkeypatch.setattr(Ledger, "apply_all", behind_another)
    refused = apply_later(waybill, copied, "out/new.txt")
    assert (refused.code, "is also written by connector copy in backfill-one" in refused.err) == (2, True)
    with ledger_of(copied) as ledger:
        assert ledger.connector_named("later") is None


def test_the_tasks_of_one_backfill_may_begin_it_at_once(
    waybill: Waybill, copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another task has stored it while this one checked: that is no other writer."""
    storing = Ledger.begin_backfill

    def behind_its_twin(ledger: Ledger, *given: Any) -> Backfill:
        monkeypatch.setattr(Ledger, "begin_backfill", storing)
        storing(ledger, *given)
        ledger.apply("unrelated", ledger.connector("copy").document | {"name": "unrelated"}, who="ann")
        return storing(ledger, *given)

    monkeypatch.setattr(Ledger, "begin_backfill", behind_its_twin)
    assert waybill("backfill", "copy", "--range", ":0-4", "--id", "one", "--sink", "path=out/new.txt").code == 0


def test_no_backfill_writes_a_file_that_another_connector_reads(waybill: Waybill, copied: Path) -> None:
    assert apply_later(waybill, copied, "out/later.txt").code == 0
    refused = waybill("backfill", "copy", "--range", ":0-4", "--sink", "path=other/new.log")
    assert (refused.code, "connector later reads this file" in refused.err) == (2, True)
    assert waybill("backfills", "list", "--json").json["backfills"] == []


def test_no_connector_reads_the_file_of_a_backfill_that_may_go_on(waybill: Waybill, copied: Path) -> None:
    (copied / "other").mkdir()
    with ledger_of(copied) as ledger:
        uid, part = ledger.connector("copy").uid, Part(Partition(f"{copied}/logs/a.log"), 0, 0, 14)
        sink = {"path": f"{copied}/other/new.log"}
        ledger.begin_backfill(Backfill(uid, "backfill-one", "backfill", 1, {}, (part,), sink, "ann"))
    refused = apply_later(waybill, copied, "out/later.txt")
    assert (refused.code, "that connector copy in backfill-one writes" in refused.err) == (2, True)
    assert waybill("backfills", "cancel", "copy", "one").code == 0
    assert apply_later(waybill, copied, "out/later.txt").code == 0


def test_a_backfill_whose_connector_is_deleted_meanwhile_is_no_success(
    waybill: Waybill, copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def attempt(opened: AtWork, connector: Connector, *_: object) -> dict[str, object]:
        opened.ledger.delete(connector.uid, who="bob")
        return {"connector": "copy", "ranges": 1}

    monkeypatch.setattr("connect_core.service.backfill_runs.attempt", attempt)
    typed = waybill("backfill", "copy", "--range", ":-", "--id", "one")
    assert (typed.code, "Connector copy was deleted before everything was moved" in typed.err) == (2, True)
