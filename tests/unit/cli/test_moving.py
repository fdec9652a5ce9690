"""run with the inline engine, from file to file; and offsets moved by hand. No servers."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from connect_core.ledger import Lease, Ledger, task_lease_id
from connect_core.sdk.values import LIVE
from connect_core.stack.processes import wait_until
from tests.unit.cli.conftest import Waybill
from tests.unit.cli.moves import moved
from tests.unit.cli.test_moving_back import planned


@pytest.fixture
def short_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (("LEASE_TTL", 12), ("LEASE_MARGIN", 2), ("QUANTUM", 1), ("SEND_TIMEOUT", 1)):
        monkeypatch.setenv(f"WAYBILL_{name}_S", str(seconds))


def _ledger(folder: Path) -> Ledger:
    return Ledger.open(f"sqlite:///{folder}/.waybill/ledger.db")


def test_a_run_moves_what_is_there_and_tells_its_receipts(waybill: Waybill, applied: Path) -> None:
    typed = waybill("run", "copy", "--engine", "inline", "--json")
    assert typed.code == 0, typed.err
    assert (applied / "out" / "copy.txt").read_text() == "one\ntwo\nthree\n"
    told = typed.json
    assert (told["read"], told["delivered"], told["deduplicated"], told["ranges"]) == (3, 3, 0, 1)
    (receipt,) = waybill("receipts", "copy", "--run", told["tasks"][0]["run"], "--json").json["receipts"]
    assert (receipt["begin"], receipt["end"]) == (0, 14)
    again = waybill("run", "copy", "--engine", "inline")
    assert (again.code, again.out.startswith("copy: nothing to move")) == (0, True)


def test_a_task_that_fails_says_so_while_the_others_go_on(waybill: Waybill, folder: Path) -> None:
    for name in ("a", "b"):
        (folder / "logs").mkdir(exist_ok=True)
        (folder / "logs" / f"{name}.log").write_text(f"{name}\n")
    (folder / "out.task1.txt").mkdir()
    document = "version: 1\nname: two\ntasks: 2\nsource: {file: {path: logs/*.log}}\nsink: {file: {path: out.txt}}\n"
    (folder / "two.yaml").write_text(document)
    assert waybill("apply", "two.yaml").code == 0
    typed = waybill("run", "two", "--engine", "inline")
    assert typed.code != 0
    first, last = typed.err.index("task 1 has failed, others continue: "), typed.err.rindex("Error: ")
    assert first < last
    assert "out.task1.txt" in typed.err[first:last]
    assert (folder / "out.task0.txt").read_text() in ("a\n", "b\n")


def test_a_log_that_is_rotated_after_a_run_that_had_no_target_is_read_to_its_end(
    waybill: Waybill, applied: Path
) -> None:
    log = applied / "logs" / "a.log"
    (applied / "out").rmdir()
    typed = waybill("run", "copy", "--engine", "inline")
    assert (typed.code, str(applied / "out") in typed.err) == (3, True), typed.err
    log.rename(f"{log}.1")
    log.write_text("four\n")
    (applied / "out").mkdir()
    os.utime(f"{log}.1", (0, 0))  # nobody has written to it for a while
    assert waybill("run", "copy", "--engine", "inline").code == 0
    assert (applied / "out" / "copy.txt").read_text() == "one\ntwo\nthree\nfour\n"


def renamed(log: Path) -> None:
    """A moment ago; nobody has written to it for a while."""
    log.rename(f"{log}.1")
    log.write_text("four\n")
    os.utime(f"{log}.1", (0, 0))


def test_a_log_that_is_rotated_after_a_run_whose_engine_was_away_is_read_to_its_end(
    waybill: Waybill, applied: Path
) -> None:
    typed = waybill("run", "copy", "--engine", "spark")
    assert (typed.code, "The engine is not running" in typed.err) == (3, True), typed.err
    renamed(applied / "logs" / "a.log")
    assert waybill("run", "copy", "--engine", "inline").code == 0
    assert (applied / "out" / "copy.txt").read_text() == "one\ntwo\nthree\nfour\n"


def test_a_log_that_is_rotated_after_a_backfill_without_records_is_read_to_its_end(
    waybill: Waybill, applied: Path
) -> None:
    log = applied / "logs" / "a.log"
    log.write_text("one")
    typed = waybill("backfill", "copy", "--range", f"{log}:-", "--id", "b1", "--engine", "inline")
    assert (typed.code, "nothing to move" in typed.out) == (0, True), typed.out + typed.err
    log.write_text("one\ntwo\nthree\n")
    renamed(log)
    assert waybill("run", "copy", "--engine", "inline").code == 0
    assert (applied / "out" / "copy.txt").read_text() == "one\ntwo\nthree\nfour\n"


@pytest.mark.parametrize(
    ("offset", "said"),
    [
        ("5", "Offset 5 is inside a record"),
        ("5", "The next record begins at 8"),
        ("15", "nothing at offset 15"),
        ("15", "from 0 to 14"),
        ("1000000", "from 0 to 14"),
    ],
)
def test_an_offset_is_set_to_where_a_record_begins(waybill: Waybill, applied: Path, offset: str, said: str) -> None:
    moved(_ledger(applied), "copy", applied, records=3)
    partition = f"{applied}/logs/a.log"
    typed = waybill("offsets", "set", "copy", partition, offset)
    assert (typed.code, said in typed.err) == (2, True), typed.err
    assert partition in typed.err
    for possible in ("0", "4", "8", "14"):
        assert waybill("offsets", "set", "copy", partition, possible, "--yes").code == 0


def test_a_full_disk_under_the_home_is_no_defect(
    waybill: Waybill, applied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr("connect_core.replication.driver.leases.remember", full)
        typed = waybill("run", "copy", "--engine", "inline")
    assert (typed.code, "No space left on device" in typed.err, "Free space there" in typed.err) == (3, True, True)
    assert waybill("run", "copy", "--engine", "inline").code == 0
    assert (applied / "out" / "copy.txt").read_text() == "one\ntwo\nthree\n"


def lines(path: Path, name: str, begin: int, end: int) -> None:
    with path.open("a") as log:
        log.writelines(f"{name} {number:04}\n" for number in range(begin, end))


@pytest.mark.parametrize("place", [50, 120])
def test_a_position_that_was_set_is_one_in_the_file_that_was_there(waybill: Waybill, applied: Path, place: int) -> None:
    """A log that is rotated before the next run is read from there to its end, and the new one from its begin; one
    that is replaced is told."""
    log, out = applied / "logs" / "a.log", applied / "out" / "copy.txt"
    log.unlink()
    lines(log, "a", 0, 100)
    assert waybill("run", "copy", "--engine", "inline").code == 0
    lines(log, "a", 100, 150)
    assert waybill("offsets", "set", "copy", str(log), str(place * 7), "--yes").code == 0
    log.rename(f"{log}.1")
    lines(log, "n", 0, 200)
    os.utime(f"{log}.1", (0, 0))
    assert waybill("run", "copy", "--engine", "inline").code == 0
    moved = [*range(100), *range(place, 150)]
    assert out.read_text().split() == [
        word for name, numbers in (("a", moved), ("n", range(200))) for one in numbers for word in (name, f"{one:04}")
    ]
    assert waybill("offsets", "set", "copy", str(log), "700", "--yes").code == 0
    log.unlink()
    lines(log, "m", 0, 500)
    typed = waybill("run", "copy", "--engine", "inline")
    assert (typed.code, "replaced: from 700" in typed.err) == (5, True), typed.err


@pytest.mark.parametrize("place", [99, 100])
def test_an_open_range_is_given_up_where_it_begins_whatever_became_of_its_file(
    waybill: Waybill, applied: Path, place: int
) -> None:
    """Nothing is moved, neither in the file that is gone nor in the one that is there, whether or not a line begins
    there in that: the next run tells."""
    log, out = applied / "logs" / "a.log", applied / "out" / "copy.txt"
    log.write_text(f"{'x' * (place - 1)}\n")
    assert waybill("run", "copy", "--engine", "inline").code == 0
    before = waybill("offsets", "show", "copy", "--json").json["offsets"][0]
    log.unlink()
    lines(log, "new", 0, 100)
    with planned(applied, str(log), place, place + 10):
        pass
    assert waybill("offsets", "set", "copy", str(log), str(place)).code == 5, "a range is open"
    assert waybill("offsets", "set", "copy", str(log), str(place), "--abandon").code == 0
    after = waybill("offsets", "show", "copy", "--json").json["offsets"][0]
    assert (after["incarnation"], after["offset"]) == (before["incarnation"], place)
    typed = waybill("run", "copy", "--engine", "inline")
    assert (typed.code, f"replaced: from {place}" in typed.err) == (5, True), typed.err
    assert waybill("run", "copy", "--engine", "inline", "--accept-gaps").code == 0
    assert out.read_text().split()[1:] == [word for one in range(100) for word in ("new", f"{one:04}")]


def test_a_run_with_a_window_moves_what_comes_until_somebody_pauses_it(waybill: Waybill, applied: Path) -> None:
    out = applied / "out" / "copy.txt"

    def write_and_pause() -> None:
        for lines in (3, 4):
            wait_until(lambda lines=lines: out.exists() and out.read_bytes().count(b"\n") == lines, 100)
            if lines == 3:
                with (applied / "logs" / "a.log").open("a") as log:
                    log.write("four\n")
        with _ledger(applied) as ledger:
            ledger.set_target_state(ledger.connector("copy").uid, "paused", who="tests")

    somebody = threading.Thread(target=write_and_pause)
    somebody.start()
    typed = waybill("run", "copy", "--engine", "inline", "--window", "5m", "--json")
    somebody.join()
    assert typed.code == 0, typed.err
    assert out.read_text() == "one\ntwo\nthree\nfour\n"
    assert (typed.json["delivered"], typed.json["ranges"]) == (4, 2)


def test_bytes_set_aside_are_said_with_their_file(waybill: Waybill, applied: Path) -> None:
    """By the run, in its output and its log, and by its receipt."""
    out = applied / "out" / "copy.txt"
    assert waybill("run", "copy", "--engine", "inline").code == 0
    with out.open("a") as file:
        file.write("not from here\n")
    with (applied / "logs" / "a.log").open("a") as log:
        log.write("four\n")
    typed = waybill("run", "copy", "--engine", "inline")
    assert typed.code == 0, typed.err
    assert out.read_text() == "one\ntwo\nthree\nfour\n"
    (aside,) = (applied / "out").glob("copy.txt.unsettled-*")
    assert aside.read_text() == "not from here\n"
    said = f"14 bytes that no receipt covers were moved to {aside}"
    assert said in typed.out
    assert said in typed.err
    newest, oldest = waybill("receipts", "copy", "--json").json["receipts"]
    assert (newest["set_aside"], oldest["set_aside"]) == ([{"file": str(aside), "bytes": 14}], [])
    assert said in waybill("receipts", "copy").out


def test_bytes_set_aside_are_shown_whoever_moved_them(waybill: Waybill, applied: Path) -> None:
    """An attempt that moved them and died left no receipt that tells of it."""
    aside = applied / "out" / "copy.txt.unsettled-3"
    aside.write_text("not from here\n")
    (applied / "out" / "other.txt.unsettled-3").write_text("another's\n")
    assert f"14 bytes that no receipt covered are in {aside}" in waybill("connectors", "show", "copy").out
    shown = waybill("connectors", "show", "copy", "--json").json
    assert shown["set_aside"] == [{"file": str(aside), "bytes": 14}]
    aside.unlink()
    assert waybill("connectors", "show", "copy", "--json").json["set_aside"] == []


def test_a_window_that_is_no_duration_is_told(waybill: Waybill, applied: Path) -> None:
    typed = waybill("run", "copy", "--window", "soon")
    assert typed.code == 2
    assert "'soon' is not a duration" in typed.err


def test_set_and_undo(waybill: Waybill, applied: Path) -> None:
    moved(_ledger(applied), "copy", applied, records=3)
    partition = f"{applied}/logs/a.log"
    typed = waybill("offsets", "set", "copy", partition, "4", "--why", "again", "--yes", "--json")
    assert typed.code == 0, typed.err
    assert (typed.json["before"]["offset"], typed.json["after"]["offset"]) == (14, 4)
    assert waybill("offsets", "show", "copy", "--json").json["offsets"][0]["offset"] == 4
    assert waybill("offsets", "undo", "copy", partition).out == f"copy: {partition}: 4 -> 14\n"
    history = waybill("offsets", "history", "copy", "--json").json["history"]
    assert [(step["kind"], step["who"], step["why"]) for step in history] == [
        ("undo", "ann", ""),
        ("set", "ann", "again"),
        ("settled", None, None),
    ]


@pytest.mark.parametrize("offset", [4, 19])
def test_an_undo_to_records_that_are_gone_is_refused(waybill: Waybill, applied: Path, offset: int) -> None:
    moved(_ledger(applied), "copy", applied, records=3)
    log = applied / "logs" / "a.log"
    log.write_text(log.read_text() + "more\n")
    assert waybill("offsets", "set", "copy", str(log), f"{offset}", "--yes").code == 0
    log.write_text("new\n")
    typed = waybill("offsets", "undo", "copy", str(log), "--yes")
    assert typed.code == 2
    assert "Reading cannot continue at offset 14: truncated" in typed.err
    assert waybill("offsets", "show", "copy", "--json").json["offsets"][0]["offset"] == offset


def test_set_before_the_first_run_asks_the_source(waybill: Waybill, applied: Path) -> None:
    partition = f"{applied}/logs/a.log"
    typed = waybill("offsets", "set", "copy", partition, "4")
    assert (typed.code, typed.out) == (0, f"copy: {partition}: 0 -> 4\n")


def test_an_unknown_partition_is_told(waybill: Waybill, applied: Path) -> None:
    typed = waybill("offsets", "set", "copy", "b.log", "0")
    assert typed.code == 2
    assert 'There is no partition "b.log"' in typed.err


def test_nothing_to_undo(waybill: Waybill, applied: Path) -> None:
    typed = waybill("offsets", "undo", "copy", f"{applied}/logs/a.log")
    assert typed.code == 2
    assert "There is no change of this offset to undo" in typed.err


@pytest.mark.usefixtures("short_lease")
def test_a_lease_that_is_held_is_4(waybill: Waybill, applied: Path) -> None:
    moved(_ledger(applied), "copy", applied, records=3)
    with _ledger(applied) as ledger:
        uid = ledger.connector("copy").uid
        lease_id = task_lease_id(uid, LIVE, 1, 0)
        lease = ledger.take(lease_id, ledger.lease(lease_id), "somebody", uid=uid, stream=LIVE, version=1)
        with _kept_alive(ledger, lease):
            typed = waybill("offsets", "set", "copy", f"{applied}/logs/a.log", "0", "--yes")
    assert typed.code == 4
    assert "somebody" in typed.err


@contextmanager
def _kept_alive(ledger: Ledger, lease: Lease) -> Iterator[None]:
    """The signs of life of a holder on another machine."""
    ledger.renew(lease, boot_id="another boot", deadline_ns=0, ttl_s=1)
    ended = threading.Event()

    def keep() -> None:
        while not ended.wait(0.1):
            ledger.renew(lease, boot_id="another boot", deadline_ns=0, ttl_s=1)

    keeper = threading.Thread(target=keep)
    keeper.start()
    try:
        yield
    finally:
        ended.set()
        keeper.join()
