"""offsets set and undo: what they would repeat is said first, and somebody has to want it. No servers."""

from __future__ import annotations

import os
import pty
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from connect_core import systems
from connect_core.ledger import Lease, Ledger, task_lease_id
from connect_core.sdk.records import Partition
from connect_core.sdk.values import LIVE, Floor, Pins, Range
from connect_core.work import Outcome
from tests import warm
from tests.contract.ledger.samples import receipt
from tests.unit.cli.conftest import Typed, Waybill


@pytest.fixture
def lines(applied: Path) -> str:
    """The partition of `copy`: 1,400 bytes, of which the ledger knows nothing yet."""
    path = applied / "logs" / "a.log"
    path.write_text("1234567\n" * 175)
    return str(path)


@contextmanager
def planned(folder: Path, key: str, begin: int, end: int, *floors: Floor) -> Iterator[tuple[Ledger, Lease, str, int]]:
    """A run that has planned one range: its ledger, its lease, its id and that of the range. Ended afterwards."""
    partition = Partition(key)
    with Ledger.open(f"sqlite:///{folder}/.waybill/ledger.db") as ledger:
        uid = ledger.connector("copy").uid
        version = ledger.assign(uid, [partition], 1).version
        lease_id = task_lease_id(uid, LIVE, version, 0)
        lease = ledger.take(lease_id, ledger.lease(lease_id), "test", uid=uid, stream=LIVE, version=version)
        run_id = ledger.begin_run(uid, LIVE, task=0, engine="inline")
        wanted = Range(LIVE, partition, 0, 0, begin, end, 10**6, 10**9, {}, Pins(1, "p", {}, "test"))
        (opened,) = ledger.plan([lease], run_id, uid, 0, [wanted], floors)
        yield ledger, lease, run_id, opened.id
        ledger.release(lease)


def settle(folder: Path, key: str, begin: int, end: int, records: int) -> str:
    """A run of its own that settles one range; returns its id."""
    with planned(folder, key, begin, end) as (ledger, lease, run_id, range_id):
        counts = dict.fromkeys(("read", "passed", "emitted", "delivered"), records)
        done = receipt(begin, end, **counts, bytes_read=end - begin, bytes_written=end - begin, evidence={}, where={})
        ledger.settle([lease], run_id, ledger.connector("copy").uid, [Outcome(range_id, done)])
        ledger.end_run(run_id, state="done", failure=None, summary={"delivered": records, "ranges": 1})
    return run_id


def offset(waybill: Waybill) -> int:
    return int(waybill("offsets", "show", "copy", "--json").json["offsets"][0]["offset"])


@pytest.fixture
def built_on(waybill: Waybill, applied: Path, lines: str) -> str:
    """700 bytes were settled, somebody went on at 707 although nothing was read there, and a run has built on that."""
    settle(applied, lines, 0, 700, 100)
    assert waybill("offsets", "set", "copy", lines, "704", "--why", "an empty line").code == 0
    return settle(applied, lines, 704, 1400, 87)


def test_an_undo_that_repeats_is_refused_without_a_terminal(waybill: Waybill, built_on: str, lines: str) -> None:
    typed = waybill("offsets", "undo", "copy", lines)
    assert (typed.code, offset(waybill)) == (2, 1400)
    assert "moving back from 1,400 to 700 delivers 87 records of 1 receipt (696 bytes read) again" in typed.err
    assert "1 run has used the change by ann of " in typed.err
    assert f"(the last: {built_on})" in typed.err
    assert "Nothing was changed. Add --yes to confirm" in typed.err


def test_an_undo_that_repeats_says_what_and_is_done_with_yes(waybill: Waybill, built_on: str, lines: str) -> None:
    typed = waybill("offsets", "undo", "copy", lines, "--yes", "--json")
    assert (typed.code, offset(waybill)) == (0, 700)
    assert "delivers 87 records of 1 receipt (696 bytes read) again" in typed.err
    assert typed.json["repeats"] == {"receipts": 1, "records": 87, "bytes_read": 696, "at_most": False}


def test_a_set_into_the_middle_says_the_most_that_it_can_repeat(waybill: Waybill, applied: Path, lines: str) -> None:
    settle(applied, lines, 0, 1400, 175)
    typed = waybill("offsets", "set", "copy", lines, "800")
    assert (typed.code, offset(waybill)) == (2, 1400)
    assert "from 1,400 to 800 delivers up to 175 records of 1 receipt (up to 1,400 bytes read) again" in typed.err
    assert waybill("offsets", "set", "copy", lines, "800", "--yes").code == 0


def test_moving_forward_and_taking_it_back_at_once_asks_nobody(waybill: Waybill, applied: Path, lines: str) -> None:
    settle(applied, lines, 0, 700, 100)
    assert waybill("offsets", "set", "copy", lines, "1400").code == 0
    typed = waybill("offsets", "undo", "copy", lines)
    assert (typed.code, typed.err, offset(waybill)) == (0, "", 700)


def test_an_undo_forward_says_that_runs_have_built_on_the_change(waybill: Waybill, applied: Path, lines: str) -> None:
    settle(applied, lines, 0, 1400, 175)
    assert waybill("offsets", "set", "copy", lines, "0", "--yes").code == 0
    settle(applied, lines, 0, 700, 100)
    typed = waybill("offsets", "undo", "copy", lines)
    assert typed.code == 2
    assert "1 run has used the change" in typed.err
    assert "delivers" not in typed.err


@pytest.mark.parametrize(("answer", "code", "stands"), [("y\n", 0, 700), ("n\n", 1, 1400), ("\n", 1, 1400)])
def test_a_person_is_asked(
    answer: str, code: int, stands: int, waybill: Waybill, built_on: str, lines: str, asked: Callable[..., Typed]
) -> None:
    typed = asked(answer, "offsets", "undo", "copy", lines)
    assert (typed.code, offset(waybill)) == (code, stands)
    assert typed.err.index("87 records") < typed.err.index("Change it? [y/N]")


def test_a_position_that_a_run_has_moved_meanwhile_stays(
    waybill: Waybill, applied: Path, lines: str, asked: Callable[..., Typed]
) -> None:
    """The run settles while the person reads the question."""
    settle(applied, lines, 0, 700, 100)
    typed = asked("y\n", "offsets", "set", "copy", lines, "0", meanwhile=lambda: settle(applied, lines, 700, 1400, 9))
    assert (typed.code, offset(waybill)) == (1, 1400)
    said = "A run or another change moved the offset meanwhile: it is 1,400 now, and was 700; nothing was changed"
    assert said in typed.err


def test_giving_up_a_range_says_what_its_target_has_deleted_unseen(
    waybill: Waybill, applied: Path, lines: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What of it arrived and is gone is delivered again, whatever it is given up for."""
    settle(applied, lines, 0, 700, 100)
    with planned(applied, lines, 700, 1400, Floor(Partition(lines).id, "topic/broker/0", 30)):
        pass
    forgetful = SimpleNamespace(within=lambda floors: [floor._replace(position=70) for floor in floors])
    monkeypatch.setattr(systems, "sink", lambda *_: forgetful)
    give_up = ("offsets", "set", "copy", lines, "704", "--abandon")
    refused = waybill(*give_up)
    assert (refused.code, offset(waybill)) == (2, 700)
    assert "deleted 40 messages before they were checked" in refused.err
    done = waybill(*give_up, "--yes")
    assert (done.code, offset(waybill)) == (0, 704)
    assert "deleted 40 messages before they were checked" in done.err
    assert waybill("offsets", "set", "copy", lines, "712", "--abandon").code == 0, "nothing is open any more"


@pytest.fixture
def asked(applied: Path) -> Callable[..., Typed]:
    """A command in a process of its own whose standard input is a terminal; `meanwhile` is done before the answer."""

    def typed(answer: str, *words: str, meanwhile: Callable[[], object] = lambda: None) -> Typed:
        ours, theirs = pty.openpty()
        pipe = subprocess.PIPE
        with warm.session().popen(
            ["waybill", *words], cwd=applied, stdin=theirs, stdout=pipe, stderr=pipe, text=True
        ) as running:
            assert running.stdout
            assert running.stderr
            told = ""
            while "[y/N]" not in told and (letter := running.stderr.read(1)):
                told += letter
            meanwhile()
            os.write(ours, answer.encode())
            out, err = running.stdout.read(), told + running.stderr.read()
        os.close(theirs)
        os.close(ours)
        return Typed(running.returncode, out, err)

    return typed
