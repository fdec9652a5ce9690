"""The driver's side of workers that stay: each works through one lane after the other, which it is sent over a line.

Both engines use it. What differs is how a worker is started, and how it is told why one has ended. A worker may be on
another host: its lanes have their deadline in its own clock (`host_clocks`).
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from connect_core.clock import now_ns
from connect_core.engine import envelope
from connect_core.engine.failures import OUT_OF_TIME
from connect_core.engine.host_clocks import Sample, best, lane_there
from connect_core.engine.line import Line, LineEnded
from connect_core.engine.requests import CLOCK, STOP
from connect_core.errors import EngineFailed
from connect_core.replication.host import boot_id
from connect_core.work import Engine, Lane, Outcome, ScanTask, ToStop

if TYPE_CHECKING:
    from connect_core.sdk.scan import ScanResult

_ASK_EVERY_S = 0.5

_FRESH_NS = 1_000_000_000
"""So old a sample of another host's clock may be: a lane there loses a fifth of its sample's age (`host_clocks`)."""

_CLOCK_LIMIT_S = 30.0
"""For workers to say what their clocks read, on a busy host."""

Ended = Callable[[int, "int | None"], NoReturn]
"""Is given the number of a worker whose line has ended and the deadline that it had; raises EngineFailed with why."""


@dataclass
class Worker:
    """One of them, as its driver knows it. `here`: its clock is the driver's own."""

    line: Line
    sample: Sample
    here: bool

    def heard(self, message: bytes) -> None:
        """Keeps what its clock read, where that says more than what was known. It was received now, or before: to take
        it for later than it was only makes a deadline earlier."""
        received_ns = now_ns()
        if reading := envelope.reading(message):
            self.sample = best((self.sample, Sample(reading, received_ns)), received_ns)

    def lane(self, lane: Lane) -> Lane:
        """The lane as this worker gets it."""
        return lane if self.here else lane_there(lane, self.sample)


def greeted(line: Line, limit_s: float, asked_ns: int) -> Worker:
    """The worker at the other end, whose first message says what its clock reads. It was started or asked at `asked_ns`
    of CLOCK_BOOTTIME. Raises TimeoutError, and LineEnded."""
    reading = envelope.reading(line.receive(limit_s))
    if reading is None:
        raise LineEnded
    sample = Sample(reading, now_ns())
    return Worker(line, sample, sample.is_of(boot_id(), asked_ns))


class Workers:
    """In one order. `grace_s` is how long one may be late: it kills itself at the deadline of its lane. `to_stop` is
    asked now and then whether the lanes at work are to end early."""

    def __init__(self, workers: Sequence[Worker], ended: Ended, grace_s: float, to_stop: ToStop) -> None:
        self._workers, self._ended, self._grace_s, self._to_stop = workers, ended, grace_s, to_stop

    @property
    def elsewhere(self) -> bool:
        """Whether one of them is on another host."""
        return not all(worker.here for worker in self._workers)

    def read_clocks(self) -> None:
        """See `work.OnOtherHosts`."""
        oldest_ns = min((worker.sample.received_ns for worker in self._workers if not worker.here), default=now_ns())
        if now_ns() - oldest_ns > _FRESH_NS:
            self.answers([CLOCK] * len(self._workers), _CLOCK_LIMIT_S, [None] * len(self._workers))

    def execute(self, lanes: Sequence[Lane]) -> list[Outcome]:
        """Of at most as many lanes as there are workers. Raises EngineFailed when one does not answer: then nothing is
        known of what it wrote, and none of these workers is of use any more."""
        left_s = (max((lane.deadline_ns for lane in lanes), default=0) - now_ns()) / 1e9
        there = [worker.lane(lane) for worker, lane in zip(self._workers, lanes, strict=False)]
        requests, deadlines = [envelope.request(lane) for lane in there], [lane.deadline_ns for lane in lanes]
        answers = self.answers(requests, max(left_s, 0) + self._grace_s, deadlines)
        pairs = zip(lanes, answers, strict=True)
        return [outcome for lane, answer in pairs for outcome in envelope.outcomes(lane, answer)]

    def answers(
        self, requests: Sequence[bytes], limit_s: float, deadlines: Sequence[int | None] = (None,)
    ) -> list[bytes]:
        """One for each request, of as many workers. Raises EngineFailed as soon as one has ended, or when the limit is
        over."""
        until = time.monotonic() + limit_s
        for number, request in enumerate(requests):
            self._ask(number, request, until, deadlines[number])
        answers: dict[int, bytes] = {}
        asked, stopped = time.monotonic(), False
        while waiting := [number for number in range(len(requests)) if number not in answers]:
            for number in self._ready(waiting, until):
                answer = self._answer(number, deadlines[number])
                if answer is not None:
                    answers[number] = answer
            if not stopped and time.monotonic() - asked >= _ASK_EVERY_S:
                asked, stopped = time.monotonic(), self._to_stop()
                for number in waiting if stopped else ():
                    self._ask(number, STOP, until, deadlines[number])
        return [answers[number] for number in range(len(requests))]

    def _ask(self, number: int, request: bytes, until: float, deadline_ns: int | None) -> None:
        try:
            self._workers[number].line.send(request, max(until - time.monotonic(), 0.001))
        except LineEnded:
            self._ended(number, deadline_ns)
        except TimeoutError:
            raise EngineFailed(
                "A worker did not take what it was sent in time",
                where=f"worker {number}",
                next_step="Its lane ends at the deadline; the next attempt tries again",
            ) from None

    def _ready(self, waiting: Sequence[int], until: float) -> list[int]:
        poll = select.poll()
        by_line = {self._workers[number].line.fileno(): number for number in waiting}
        for line in by_line:
            poll.register(line, select.POLLIN)
        left_s = until - time.monotonic()
        ready = [by_line[line] for line, _ in poll.poll(min(max(left_s, 0), _ASK_EVERY_S) * 1000)]
        if not ready and left_s <= _ASK_EVERY_S:
            raise EngineFailed(
                f"{len(waiting)} workers gave no answer in time; lanes end at their deadline, answered or not",
                next_step=OUT_OF_TIME,
            )
        return ready

    def _answer(self, number: int, deadline_ns: int | None) -> bytes | None:
        worker = self._workers[number]
        try:
            answer = worker.line.arrived()
        except LineEnded:
            self._ended(number, deadline_ns)
        if answer is not None:
            worker.heard(answer)
        return answer


@dataclass(frozen=True)
class WithWorkers:
    """An engine with as many workers as were started: what `work.Starting` gives."""

    engine: Engine
    workers: Workers

    @property
    def described(self) -> str:
        return self.engine.described

    def execute(self, lanes: Sequence[Lane]) -> list[Outcome]:
        return self.workers.execute(lanes)

    def scan(self, task: ScanTask) -> dict[int, ScanResult]:
        return self.engine.scan(task)

    @property
    def elsewhere(self) -> bool:
        return self.workers.elsewhere

    def read_clocks(self) -> None:
        self.workers.read_clocks()
