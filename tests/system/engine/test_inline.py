"""The inline engine with real child processes and the drill system."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import psutil
import pytest

from connect_core.engine import engine, inline
from connect_core.engine.failures import ended_by, next_step_after
from connect_core.engine.inline import InlineEngine
from connect_core.engine.spark_checks import installed_version
from connect_core.errors import ConfigError, EngineFailed, Retriable
from tests.unit.engine.lanes import DRILL, executed_three_times, lane, meeting, scan_task


@pytest.fixture(autouse=True)
def _drill(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(DRILL))


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def gone_within(pid: int, limit_s: float) -> bool:
    until = time.monotonic() + limit_s
    while alive(pid) and time.monotonic() < until:
        time.sleep(0.02)
    return not alive(pid)


def pid_in(note: Path, limit_s: float = 60) -> int:
    until = time.monotonic() + limit_s
    while not (note.exists() and note.read_text()) and time.monotonic() < until:
        time.sleep(0.02)
    return int(note.read_text())


def test_lanes_run_side_by_side_in_processes_of_their_own(tmp_path: Path) -> None:
    outcomes = InlineEngine().execute(meeting(tmp_path, 2))
    places = [outcome.receipt.where for outcome in outcomes if outcome.receipt]
    assert [outcome.range_id for outcome in outcomes] == [0, 100]
    assert len({os.getpid(), *(place["pid"] for place in places)}) == 3


def test_a_search_comes_back(tmp_path: Path) -> None:
    (found,) = InlineEngine().scan(scan_task()).values()
    assert found.complete
    assert found.scanned["t"] != os.getpid()


def test_no_lanes_are_no_work() -> None:
    assert InlineEngine().execute([]) == []


def test_a_lane_that_starts_after_its_deadline_refuses_and_need_not_be_killed(tmp_path: Path) -> None:
    """So that the driver learns that nothing was written, instead of having to find out."""
    (outcome,) = InlineEngine().execute([lane(tmp_path, left_s=-5)])
    assert outcome.failure is not None
    assert (outcome.failure.kind, outcome.clean) == ("Retriable", True)
    assert "after its deadline" in outcome.failure.what


def test_what_escapes_from_the_work_is_an_unclean_outcome_of_every_range(tmp_path: Path) -> None:
    outcomes = InlineEngine().execute([lane(tmp_path, ranges=2, act="raise")])
    assert [(outcome.range_id, outcome.receipt, outcome.clean) for outcome in outcomes] == [
        (0, None, False),
        (1, None, False),
    ]
    assert all(outcome.failure and outcome.failure.kind == "ValueError" for outcome in outcomes)


def test_what_fails_in_a_search_is_raised() -> None:
    with pytest.raises(Retriable, match="ValueError"):
        InlineEngine().scan(scan_task(act="raise"))


def test_a_plug_in_that_wants_to_leave_fails_its_lane(tmp_path: Path) -> None:
    [outcome] = InlineEngine().execute([lane(tmp_path, act="leave")])
    assert outcome.failure is not None
    assert (outcome.failure.kind, outcome.receipt) == ("SystemExit", None)
    with pytest.raises(Retriable, match="SystemExit"):
        InlineEngine().scan(scan_task(act="leave"))


def test_a_child_that_ends_by_itself_is_told_without_what_it_quoted(tmp_path: Path) -> None:
    with pytest.raises(EngineFailed, match=r"ended with status 7; its last lines: .*SomeError") as raised:
        InlineEngine().execute([lane(tmp_path, act="exit", secret="payload")])
    assert "payload" not in str(raised.value)


def test_a_child_that_is_killed_ends_its_siblings_at_once(tmp_path: Path) -> None:
    notes = [tmp_path / "first", tmp_path / "second"]
    killer = subprocess.Popen([sys.executable, "-c", KILL_WHO_NOTES, str(notes[0]), str(notes[1])])
    started = time.monotonic()
    with killer, pytest.raises(EngineFailed, match=r"killed by signal 9, \d+ s before its deadline: not by Waybill"):
        InlineEngine().execute([lane(tmp_path, index=i, seconds=15, note=note) for i, note in enumerate(notes)])
    assert time.monotonic() - started < 14
    assert not alive(pid_in(notes[1]))


KILL_WHO_NOTES = """
import os, sys, time
from pathlib import Path
first, second = map(Path, sys.argv[1:])
until = time.monotonic() + 20
while not (second.exists() and first.exists() and first.read_text()) and time.monotonic() < until:
    time.sleep(0.02)
os.kill(int(first.read_text()), 9)
"""


def test_a_lane_that_hears_no_signal_is_killed_at_its_deadline(tmp_path: Path) -> None:
    wanted = lane(tmp_path, act="deaf", seconds=60, left_s=8)
    started, log = time.monotonic(), tmp_path / "failures.log"
    with pytest.raises(EngineFailed, match="killed by signal 9: its deadline has passed") as told:
        InlineEngine(log=log).execute([wanted])
    assert "WAYBILL_LEASE_TTL_S" in told.value.next_step
    assert time.monotonic() - started < 60, "it was killed, and did not end by itself"
    assert "at which Waybill kills what still runs" in log.read_text()


@pytest.mark.parametrize(
    ("number", "deadline_ns", "words"),
    [
        (9, 2 * 10**9, ", 1 s before its deadline: not by Waybill, but by the system"),
        (9, 10**9, ": its deadline has passed, at which Waybill kills what still runs"),
        (9, None, ", by the system"),
        (11, 10**9, ""),
    ],
)
def test_who_may_have_killed_a_process_is_told(number: int, deadline_ns: int | None, words: str) -> None:
    told = ended_by(number, deadline_ns, now_ns=10**9)
    assert told.startswith(words)
    assert ("out of memory" in told) == (number == 9)
    was_late = "its deadline has passed" in told
    assert ("WAYBILL_LEASE_TTL_S" in next_step_after(number, deadline_ns, now_ns=10**9)) == was_late


def test_children_die_with_their_driver(tmp_path: Path) -> None:
    note = tmp_path / "note"
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(tmp_path), str(note)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[3]), str(DRILL)])},
    )
    child = pid_in(note)
    driver.send_signal(signal.SIGKILL)
    assert driver.wait() == -signal.SIGKILL
    assert gone_within(child, 30)


DRIVER = textwrap.dedent(
    """
    import sys
    from pathlib import Path
    from connect_core.engine.inline import InlineEngine
    from tests.unit.engine.lanes import lane
    InlineEngine().execute([lane(Path(sys.argv[1]), act="deaf", seconds=60, left_s=60, note=Path(sys.argv[2]))])
    """
)


def test_a_child_whose_driver_is_gone_before_it_starts_does_nothing(tmp_path: Path) -> None:
    from connect_core.engine import envelope

    note = tmp_path / "note"
    command = [sys.executable, "-m", "connect_core.engine.child", "lane", "1"]
    request = envelope.request(lane(tmp_path, note=note))
    ended = subprocess.run(command, input=request, capture_output=True, cwd=Path(__file__).parents[3])
    assert ended.returncode == -signal.SIGKILL
    assert not note.exists()


def test_nothing_of_a_lane_is_on_a_command_line_or_in_an_environment(tmp_path: Path) -> None:
    note = tmp_path / "note"
    spy = subprocess.Popen([sys.executable, "-c", SPY, str(note)], stdout=subprocess.PIPE)
    InlineEngine().execute([lane(tmp_path, seconds=1, note=note, secret="only-in-memory")])
    seen, _ = spy.communicate(timeout=30)
    assert b"connect_core.engine.child" in seen
    assert b"only-in-memory" not in seen


SPY = """
import sys, time
from pathlib import Path
note = Path(sys.argv[1])
until = time.monotonic() + 20
while not (note.exists() and note.read_text()) and time.monotonic() < until:
    time.sleep(0.02)
process = Path("/proc") / note.read_text()
sys.stdout.buffer.write((process / "cmdline").read_bytes() + (process / "environ").read_bytes())
"""


def test_an_engine_says_what_it_is() -> None:
    version = f"Python {sys.version_info.major}.{sys.version_info.minor}"
    assert engine("inline").described == f"inline, {version}"
    assert engine("spark", remote="sc://localhost:1").described == f"spark, Spark {installed_version()}, {version}"


def test_an_engine_has_a_known_kind() -> None:
    with pytest.raises(ConfigError, match="There is no engine 'flink'"):
        engine("flink")


def test_the_spark_engine_needs_an_address() -> None:
    with pytest.raises(ConfigError, match="waybill engine start"):
        engine("spark")


def test_processes_that_are_ready_take_no_time_of_their_lanes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are there before the deadline is set, however long they took to start."""
    (tmp_path / "sitecustomize.py").write_text("import time; time.sleep(2)")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(DRILL)]))
    with InlineEngine().started(2) as ready:
        outcomes = ready.execute([lane(tmp_path, left_s=1.9)])
    assert [outcome.failure for outcome in outcomes] == [None]


def is_of_the_engine(child: psutil.Process) -> bool:
    """A child of a test before may be a zombie, which has no command line."""
    try:
        return "engine.child" in " ".join(child.cmdline())
    except psutil.Error:
        return False


def test_processes_that_get_no_lane_end_with_their_context() -> None:
    with InlineEngine().started(1):
        [pid] = [child.pid for child in psutil.Process().children() if is_of_the_engine(child)]
        assert alive(pid)
    assert not alive(pid)


def test_a_process_that_does_not_take_its_lane_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It stands still, and its lane is larger than what the kernel keeps for it."""
    monkeypatch.setattr(inline, "_LANE_GRACE_S", 0.2)
    with InlineEngine().started(1) as ready:
        [pid] = [child.pid for child in psutil.Process().children() if is_of_the_engine(child)]
        os.kill(pid, signal.SIGSTOP)
        rescue = threading.Timer(10, os.kill, (pid, signal.SIGKILL))
        rescue.start()
        wanted = lane(tmp_path, left_s=0.5, secret=os.urandom(2_000_000).hex())
        with pytest.raises(EngineFailed, match="did not take what it was sent"):
            ready.execute([wanted])
        rescue.cancel()


def test_processes_stay_from_one_execution_to_the_next(tmp_path: Path) -> None:
    with InlineEngine().started(2) as ready:
        outcomes = executed_three_times(ready, tmp_path)
    places = [outcome.receipt.where["pid"] for outcome in outcomes if outcome.receipt]
    assert (len(places), len(set(places))) == (6, 2)


def test_a_process_that_stays_is_killed_at_the_deadline_of_its_own_lane(tmp_path: Path) -> None:
    """Not at that of the lane before it."""
    with InlineEngine().started(1) as ready:
        ready.execute([lane(tmp_path, left_s=2)])
        time.sleep(2.1)
        [outcome] = ready.execute([lane(tmp_path, index=1)])
        assert outcome.receipt is not None
        with pytest.raises(EngineFailed, match="its deadline has passed"):
            ready.execute([lane(tmp_path, index=2, act="deaf", seconds=60, left_s=2)])


def test_lanes_at_work_are_ended_early_when_they_are_to_stop(tmp_path: Path) -> None:
    """The next lane is not told of it."""
    stop = threading.Event()
    with InlineEngine().started(2, stop.is_set) as ready:
        threading.Timer(1, stop.set).start()
        outcomes = ready.execute([lane(tmp_path, index=index, act="until_stopped", left_s=60) for index in (0, 1)])
        assert [outcome.receipt is not None for outcome in outcomes] == [True, True]
        stop.clear()
        [outcome] = ready.execute([lane(tmp_path, index=2, act="until_stopped", left_s=2)])
        assert outcome.receipt is not None
