"""Use cases as an edge calls them: plain values in and out, questions and notices through what was given."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from connect_core.errors import ConfigError
from connect_core.ledger import Backfill, Ledger, PartitionState
from connect_core.ledger.partitions import Name
from connect_core.replication.driver.preview import Preview
from connect_core.sdk.plugin import TypedRecord
from connect_core.sdk.records import Partition
from connect_core.sdk.values import LIVE, Part, Reject
from connect_core.service import (
    backfills,
    connectors,
    dead_letters,
    deletions,
    documents,
    groups,
    health,
    offsets,
    peeking,
    reports,
    rules,
    scheduled,
    schedules,
    trying,
)
from connect_core.service.json_values import plain
from connect_core.service.lag import lag, plan, what_waits
from connect_core.service.offsets import Move
from connect_core.service.opened import AtWork, Opened, reading
from connect_core.systems.file.source import FileSource
from tests.unit.cli.moves import moved

LENGTH = len("one\ntwo\nthree\n")


@pytest.fixture
def run(opened: AtWork, folder: Path) -> str:
    """Of the whole file, with one reject; its id."""
    reject = Reject(4, 0, "transform", "ValueNotANumber", "no number", b"two \xff")
    ledger = Ledger.open(f"sqlite:///{folder}/.waybill/ledger.db")
    return moved(ledger, "copy", folder, records=2, rejects=(reject,))


READ: list[Callable[[Opened], Any]] = [
    lambda opened: connectors.listed(opened, print),
    lambda opened: connectors.shown(opened, opened.ledger.connector("copy"), print, revisions=True),
    lambda opened: plan(opened, "copy"),
    lag,
    reports.runs,
    reports.receipts,
    reports.gaps,
    lambda opened: offsets.committed(opened, "copy"),
    lambda opened: offsets.history(opened, "copy"),
    lambda opened: dead_letters.listed(opened, "copy"),
    lambda opened: rules.listed(opened, "copy"),
    lambda opened: health.status(print),
    lambda opened: health.findings(),
    lambda opened: documents.options("file"),
]


@pytest.mark.parametrize("read", READ)
def test_what_comes_out_has_a_json_form(read: Callable[[Opened], Any], opened: AtWork, run: str) -> None:
    told = read(opened)
    assert json.loads(json.dumps(told, default=plain)) is not None
    for one in told if isinstance(told, list) else [told]:
        assert isinstance(one, dict)


def test_what_would_change_is_shown_and_nothing_is_stored(folder: Path, said: list[str]) -> None:
    paths = [Path("copy.yaml")]
    assert [one["change"] for one in documents.would_change(paths, said.append)] == ["created"]
    with reading() as opened:
        assert connectors.listed(opened, said.append) == []
    (applied,) = documents.apply(paths, say=said.append)
    assert (applied["change"], applied["revision"]) == ("created", 1)
    assert [one["change"] for one in documents.would_change(paths, said.append)] == ["unchanged"]
    assert said == []


def test_each_end_of_a_document_is_looked_at(folder: Path, said: list[str]) -> None:
    (checked,) = documents.check([Path("copy.yaml")], said.append, probe=True)
    assert [(one["ok"], one["what"].split(":")[0]) for one in checked["probe"]] == [(True, "source"), (True, "sink")]
    (unasked,) = documents.check([Path("copy.yaml")], said.append)
    assert "probe" not in unasked


def test_a_look_at_the_target_gives_bytes(opened: AtWork, folder: Path) -> None:
    (folder / "out" / "copy.txt").write_bytes(b"one\ntw\xff\n")
    assert peeking.newest("copy", 1) == {"name": "copy", "messages": [{"value": b"tw\xff"}]}


def test_what_records_would_become(opened: AtWork) -> None:
    with pytest.raises(ConfigError, match="copy has no rules and no transforms"):
        trying.newest(trying.applied(opened, "copy"), 1)
    rules.changed(opened, "copy", rules.adding("copy", "all", {"tags": "x"}))
    becomes = [{"rule": "all", "to": None, "tags": "x", "key": None}]
    assert [(one["value"], one["becomes"]) for one in trying.newest(trying.applied(opened, "copy"), 1)] == [
        (b"three", becomes)
    ]
    (by_hand,) = trying.typed(trying.applied(opened, "copy"), TypedRecord(b"four", "t", None, None, (("a", "b"),)))
    assert (by_hand["topic"], by_hand["value"], by_hand["becomes"]) == ("t", b"four", becomes)


def test_files_have_no_consumer_groups(opened: AtWork) -> None:
    with pytest.raises(ConfigError, match="has consumer groups"):
        groups.translate(opened, "copy", "readers")


def test_what_was_moved(opened: AtWork, run: str) -> None:
    (known,) = reports.runs(opened, "copy")
    assert (known["id"], known["connector"], known["delivered"], known["failure"]) == (run, "copy", 2, None)
    (receipt,) = reports.receipts(opened, run=run)
    assert (receipt["begin"], receipt["end"], receipt["read"], receipt["rejected"]) == (0, LENGTH, 3, 1)
    assert reports.receipts(opened, "copy", stream="all") == [receipt]
    assert reports.receipts(opened, "copy", run="another") == []
    (rejected,) = dead_letters.listed(opened, "copy")
    assert "original" not in rejected
    assert dead_letters.shown(opened, "copy", rejected["id"])["original"] == b"two \xff"


def test_what_is_waiting(opened: AtWork, run: str, folder: Path) -> None:
    with (folder / "logs" / "a.log").open("a") as file:
        file.write("four\nno end")
    (known,) = lag(opened)
    assert (known["lag"], known["unit"]) == (5, "bytes")
    planned = plan(opened, "copy")
    assert (planned["lag"], planned["partitions"][0]["waiting"]) == (5, len("no end"))


def test_a_state_is_kept_in_the_ledger_without_airflow(opened: AtWork, said: list[str]) -> None:
    paused = connectors.set_state(opened, "copy", "paused")
    assert (paused["before"], paused["state"]) == ("running", "paused")
    assert connectors.shown(opened, opened.ledger.connector("copy"), said.append)["state"] == "paused"


def test_nothing_is_deleted_that_somebody_does_not_agree_to(opened: AtWork, said: list[str]) -> None:
    def refuse(uid: str) -> None:
        raise ConfigError(uid)

    uid = connectors.shown(opened, opened.ledger.connector("copy"), said.append)["uid"]
    with pytest.raises(ConfigError, match=uid):
        deletions.delete(opened, "copy", force=False, agree=refuse, say=said.append)
    assert len(connectors.listed(opened, said.append)) == 1
    told = deletions.delete(opened, "copy", force=False, agree=lambda _: None, say=said.append)
    assert (told["uid"], told["deleted"], told["notes"]) == (uid, True, [])
    assert connectors.listed(opened, said.append) == []


def test_who_agrees_to_a_move_is_told_what_it_repeats(opened: AtWork, run: str, said: list[str]) -> None:
    asked: list[Move] = []
    (before,) = offsets.committed(opened, "copy")
    told = offsets.set_offset(opened, "copy", before["partition"], 4, why="x", agree=asked.append, say=said.append)
    (move,) = asked
    assert (move.before, move.after, move.repeats.receipts, move.repeats.at_most) == (LENGTH, 4, 1, True)
    assert (told["before"]["offset"], told["after"]["offset"]) == (LENGTH, 4)
    offsets.undo(opened, "copy", before["partition"], agree=asked.append, say=said.append)
    assert (asked[1].before, asked[1].after, asked[1].repeats.receipts) == (4, LENGTH, 0)
    assert asked[1].undone is not None
    kinds = [(step["kind"], step["why"]) for step in offsets.history(opened, "copy")]
    assert kinds[1] == ("set", "x")


def test_without_consent_a_position_stays(opened: AtWork, run: str, said: list[str]) -> None:
    def refuse(move: Move) -> None:
        raise ConfigError("no")

    (before,) = offsets.committed(opened, "copy")
    with pytest.raises(ConfigError, match="no"):
        offsets.set_offset(opened, "copy", before["partition"], 0, agree=refuse, say=said.append)
    assert offsets.committed(opened, "copy") == [before]


def test_rules_are_changed_one_by_one(opened: AtWork) -> None:
    told = rules.changed(opened, "copy", rules.adding("copy", "hot", {"when": "$.n > 30"}), dry_run=True)
    assert (told["applied"], told["revision"], rules.listed(opened, "copy")) == (False, 1, [])
    rules.changed(opened, "copy", rules.adding("copy", "hot", {"when": "$.n > 30"}))
    rules.changed(opened, "copy", rules.adding("copy", "all", {}, before="hot", enabled=False))
    rules.changed(opened, "copy", rules.setting("copy", "hot", {"keys": "{$.n}"}, ["when"]))
    assert rules.listed(opened, "copy") == [{"name": "all", "enabled": False}, {"name": "hot", "keys": "{$.n}"}]
    rules.changed(opened, "copy", rules.enabling("copy", "all"))
    assert rules.changed(opened, "copy", rules.deleting("copy", "hot"))["rules"] == [{"name": "all"}]
    with pytest.raises(ConfigError, match="nothing to change"):
        rules.setting("copy", "all", {}, [])


def test_health_without_a_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: list[str]) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("WAYBILL_HOME", "WAYBILL_DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    told = health.status(said.append)
    assert (told["home"], told["connectors"]) == (None, [])
    assert "waybill dev up" in told["problem"]
    assert {one["subject"]: one["state"] for one in health.findings()}["home"] == "warning"
    assert not any(tmp_path.iterdir())


def test_a_scheduler_makes_its_jobs_from_connectors_that_are_there(opened: AtWork) -> None:
    (connector,) = schedules.connectors()
    assert schedules.document_of(connector).source.system == "file"
    assert [one.name for one in schedules.connectors("copy")] == ["copy"]
    assert schedules.connectors("gone") == []
    assert schedules.kinds()(connector.document) == opened.settings.engine


def test_a_trigger_sees_what_waits_until_it_is_settled(opened: AtWork, folder: Path) -> None:
    assert list(what_waits("copy").values()) == [LENGTH]
    moved(Ledger.open(f"sqlite:///{folder}/.waybill/ledger.db"), "copy", folder, records=3)
    assert what_waits("copy") == {}


@pytest.mark.parametrize(
    ("stored", "seen", "waiting"),
    [
        ("active", "quarantined", {"a": "quarantined"}),
        ("quarantined", "quarantined", {}),
        ("quarantined", "active", {"a": "active"}),
        ("retired", "active", {}),
    ],
)
def test_a_trigger_sees_what_a_run_would_put_aside_or_take_back(
    opened: AtWork, monkeypatch: pytest.MonkeyPatch, stored: Name, seen: Name, waiting: dict[str, str]
) -> None:
    partition = Partition("a")
    preview = Preview(partition.key, 0, 0, 10, 10, 10, 0, None, (), state=seen)
    monkeypatch.setattr("connect_core.service.lag.plan_connector", lambda *_: [preview])
    monkeypatch.setattr(Ledger, "partition_states", lambda *_: {partition: PartitionState(stored)})
    assert what_waits("copy") == waiting


def test_the_attempts_of_one_run_of_a_scheduler(opened: AtWork, run: str) -> None:
    of = "replicate.copy manual__1"
    uid = opened.ledger.connector("copy").uid
    opened.ledger.begin_run(uid, LIVE, task=0, engine="inline", attempt_of=of)
    with pytest.raises(ConfigError, match="cannot be used"):
        scheduled.refuse("copy", of, "the document cannot be used")
    told = reports.of_scheduled_run("copy", of)
    assert {one["failure"] and one["failure"]["what"] for one in told["runs"]} == {None, "the document cannot be used"}
    assert (told["receipts"], told["total"]["ranges"]) == ([], 0)


def test_a_backfill_is_shown_with_its_parts_until_it_is_cancelled(opened: AtWork, run: str, folder: Path) -> None:
    parts = (Part(Partition(str(folder / "logs" / "a.log")), 0, 4, LENGTH),)
    uid, stream = opened.ledger.connector("copy").uid, "backfill-again"
    opened.ledger.begin_backfill(Backfill(uid, stream, "backfill", 1, {"from": "2h"}, parts, {"path": "x"}, "ann"))
    told = backfills.shown(opened, "copy", "again")
    assert (told["stream"], told["state"], told["done"], told["planned"]) == (stream, "running", 0, LENGTH - 4)
    assert (told["parts"][0]["begin"], told["sink"], told["open"]) == (4, {"path": "x"}, [])
    assert backfills.listed(opened, "copy") == backfills.listed(opened) == [told]
    cancelled, changed = backfills.cancel(opened, "copy", stream)
    assert (cancelled["state"], changed) == ("cancelled", True)
    assert backfills.cancel(opened, "copy", stream)[1] is False


def test_partitions_that_a_run_has_found_first_are_the_ones(opened: AtWork, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have split the same file elsewhere: with both, all of it would be read twice."""
    uid, theirs = opened.ledger.connector("copy").uid, Partition("a.log#0-7")

    def beaten(source: FileSource, known: object) -> list[Partition]:
        opened.ledger.assign(uid, [theirs], 1)
        return [Partition("a.log#0-5")]

    monkeypatch.setattr(FileSource, "partitions", beaten)
    with pytest.raises(ConfigError, match=r'There is no partition "a\.log#0-5"'):
        offsets.set_offset(opened, "copy", "a.log#0-5", 0, agree=lambda move: None, say=print)
    assert list(opened.ledger.partitions(uid)) == [theirs]
