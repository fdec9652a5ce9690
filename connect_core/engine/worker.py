"""The engine's side in the worker process: admits a lane, arms its end, lets it work, and says what came of it.

Both engines call `run_lane` and `run_search` here, once in a process at a time. They take and return bytes
(`envelope`), never raise for what goes wrong with a request, and know nothing of systems: the work itself is in
`connect_core.replication.worker.lane`.
"""

from __future__ import annotations

import gc
import json
import socket
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress
from functools import partial
from threading import Event
from typing import TYPE_CHECKING

import pyarrow as pa

from connect_core.clock import now_ns
from connect_core.engine import envelope
from connect_core.engine.deadline import killed_at
from connect_core.engine.dialling import dialled
from connect_core.engine.driver import Driver, killed_with
from connect_core.engine.line import Line, LineEnded
from connect_core.engine.requests import CLOCK, Lanes
from connect_core.errors import EngineFailed, Failure, Retriable, WaybillError
from connect_core.replication.host import boot_id
from connect_core.replication.locks import shared
from connect_core.sdk.scan import ScanResult
from connect_core.version import code_version, plugin_versions
from connect_core.work import Lane, Outcome, ScanTask

if TYPE_CHECKING:
    from connect_core.replication.worker.lane import KeptSource


def run_lane(
    descriptor: bytes, attempt_number: int, stopped: Event | None = None, kept: KeptSource | None = None
) -> bytes:
    """Works through one lane. `attempt_number` is Spark's, 0 for the first. `stopped` ends its quantum early. `kept` is
    the source of a worker that stays.

    A lane that may not run is refused without a trace. What escapes from the work is an unclean outcome of every
    range: something may have been written.
    """
    with ExitStack() as held:
        try:
            if kept is None:
                _take_what_is_installed()
            lane = envelope.opened(descriptor, Lane)
            _admit(lane, attempt_number)
            from connect_core.replication.worker.lane import KeptSource, work

            held.enter_context(killed_with(envelope.driver(descriptor)))
            held.enter_context(_armed(lane, envelope.driver(descriptor)))
        except (WaybillError, ImportError) as refused:
            # Of a repeated task nobody knows what its first attempt has written.
            return envelope.refusal(Failure.of(refused), clean=attempt_number == 0)
        source = kept or KeptSource()
        if kept is None:
            held.callback(source.close)
        return envelope.answer(_outcomes(lane, partial(work, kept=source, stopped=stopped)))


def serve(line: Line) -> None:
    """Works through the lanes that the driver sends, one after the other, until it closes the line or dies."""
    from connect_core.replication.worker.lane import KeptSource

    lanes, source = Lanes(line), KeptSource()
    with closing(source):
        for request in lanes:
            with suppress(LineEnded):
                line.send(envelope.hello() if request == CLOCK else _served(lanes, request, source))


def _served(lanes: Lanes, request: bytes, source: KeptSource) -> bytes:
    """A lane whose driver is on another host ends with its line: its process cannot be watched."""
    with nullcontext() if envelope.driver(request).boot_id == boot_id() else lanes.ending_with_line():
        return run_lane(request, 0, lanes.stopped, source)


def stay(invitation: bytes, attempt_number: int) -> bytes:
    """Dials the driver and serves it. The answer is empty; it comes when the driver needs this worker no longer, or is
    out of reach. Raises EngineFailed for a second attempt, so that the job fails."""
    _require_first(attempt_number, "a worker that stays")
    with suppress(OSError, LineEnded), dialled(invitation) as line:
        prepared()
        _take_what_is_installed()
        line.send(envelope.hello())
        serve(line)
    return b""


def run_search(descriptor: bytes) -> bytes:
    """Runs one slice of a search. It is read-only: no lock, no timer; its limit is in the search."""
    try:
        _take_what_is_installed()
        task = envelope.opened(descriptor, ScanTask)
        with killed_with(envelope.driver(descriptor)):
            return envelope.answer(_found(task))
    except (Exception, SystemExit) as error:
        _log(error)
        return envelope.refusal(Failure.of(error), clean=True)


def prepared() -> None:
    """Loads what every lane needs."""
    from connect_core.replication.worker import lane  # noqa: F401


def _take_what_is_installed() -> None:
    from connect_core.replication.worker.lane import take_what_is_installed

    take_what_is_installed()


def place() -> bytes:
    """Where this worker is and what it runs, as JSON: `boot_id`, `host`, `python`, `code`, `plugins`. Prepares it."""
    prepared()
    _take_what_is_installed()
    here = {"boot_id": boot_id(), "host": socket.gethostname(), "python": sys.executable}
    return json.dumps({**here, "code": code_version(), "plugins": plugin_versions()}).encode()


def _admit(lane: Lane, attempt_number: int) -> None:
    where = f"connector {lane.connector}, task {lane.task}, epoch {lane.epoch}"
    _require_first(attempt_number, where)
    if lane.boot_id != boot_id():
        raise Retriable(
            "The lane was planned on another boot or host, so that its deadline means nothing here",
            where=where,
            next_step="The next attempt plans it again",
        )
    late_s = (now_ns() - lane.deadline_ns) / 1e9
    if late_s >= 0:
        raise Retriable(
            f"The lane started {late_s:.1f} s after its deadline",
            where=where,
            next_step="The next attempt plans it again; the engine had too few slots, or was busy or asleep",
        )


def _require_first(attempt_number: int, where: str) -> None:
    if attempt_number > 0:
        raise EngineFailed(
            f"Attempt {attempt_number} of a lane was refused: the one before it may have written",
            where=where,
            next_step="Switch task retries off: spark.task.maxFailures=1",
        )


@contextmanager
def _armed(lane: Lane, driver: Driver) -> Iterator[None]:
    """The locks first and released last; the timer ends before them, when sockets and files are closed. On another host
    than the driver's locks mean nothing, and whoever takes its lease over waits (delivery rule 3)."""
    locks = lane.lock_paths if driver.boot_id == boot_id() else ()
    with shared(locks), killed_at(lane.deadline_ns):
        yield


def _outcomes(lane: Lane, work: Callable[[Lane], list[Outcome]]) -> list[Outcome]:
    # Records are tuples and bytes by the hundred thousand, none in a cycle: looking for cycles among them would take
    # nearly half of the time of a lane that reads messages.
    gc.disable()
    try:
        return work(lane)
    except (Exception, SystemExit) as error:  # code of a plug-in may call sys.exit
        _log(error)
        failure = Failure.of(error)
        return [Outcome(wanted.id, None, failure, clean=False) for wanted in lane.ranges]
    finally:
        gc.enable()
        # The process is used again for the next lane: what this one needed is not kept.
        pa.default_memory_pool().release_unused()


def _found(task: ScanTask) -> dict[int, ScanResult]:
    from connect_core.replication.worker.lane import scan

    return scan(task)


def _log(error: BaseException) -> None:
    """Where it came from, for the engine's log. Without the message: that goes to the driver, and may be cut there."""
    frames = "".join(traceback.format_tb(error.__traceback__))
    print(f"{type(error).__name__} in a worker:\n{frames}", file=sys.stderr, flush=True)
