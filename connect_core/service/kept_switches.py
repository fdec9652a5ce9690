"""Airflow's switches, asked for many requests at once: for a server, as `kept_ledgers`. Each question takes Airflow a
tenth of a second, and with a thousand connectors some seconds, in which it does nothing else.

The server sets them for a request. Commands ask Airflow themselves.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING, Generic, TypeVar

from connect_core.errors import WaybillError

if TYPE_CHECKING:
    from connect_core.config import Settings
    from connect_core.replication.driver.status import Schedules, Switch

Told = TypeVar("Told")

REST_S = 1.0
"""At least so long an answer is taken for what it was."""
REST_FACTOR = 10
"""And at least so many times as long as it took: whoever answers has other things to do."""
LONGEST_REST_S = 15.0
"""But no longer, as far as it did not take longer: an Airflow that was slow once may have other switches since."""


@dataclass(frozen=True)
class _Answer(Generic[Told]):
    """`begun`, `ended`: seconds of the monotonic clock. An error is raised anew for each who gets it."""

    told: Told | WaybillError
    begun: float
    ended: float

    def age(self, now: float) -> float:
        """In rests: from 1 on it is asked again, and from 2 on nobody gets it."""
        if isinstance(self.told, WaybillError):
            return (now - self.ended) / REST_S
        took_s = self.ended - self.begun
        return (now - self.begun) / max(REST_S, took_s, min(LONGEST_REST_S, REST_FACTOR * took_s))


class SharedAnswer(Generic[Told]):
    """The answer to one question, for all threads. One of them asks again while the others go on with what was
    answered before, unless that is too old."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = Lock()
        self._kept: _Answer[Told] | None = None
        self._asked: Future[_Answer[Told]] | None = None

    def of(self, ask: Callable[[], Told]) -> Told:
        """Raises the WaybillError that `ask` raised."""
        with self._lock:
            kept, age = self._kept, self._kept.age(self._now()) if self._kept else 2.0
            if age >= 1 and self._asked is None:
                self._begin(ask)
            asked = self._asked
        if kept is None or age >= 2:
            assert asked is not None
            kept = asked.result()
        if isinstance(kept.told, WaybillError):
            error = kept.told
            raise type(error)(error.what, where=error.where, next_step=error.next_step)
        return kept.told

    def forget(self) -> None:
        """Something was changed: what is asked from now on is answered by what is so from now on."""
        with self._lock:
            self._kept = self._asked = None

    def _begin(self, ask: Callable[[], Told]) -> None:
        asked: Future[_Answer[Told]] = Future()
        self._asked = asked
        Thread(target=self._answer, args=(ask, asked), name="asks Airflow", daemon=True).start()

    def _answer(self, ask: Callable[[], Told], asked: Future[_Answer[Told]]) -> None:
        begun = self._now()
        try:
            told: Told | WaybillError = ask()
        except WaybillError as error:
            told = error
        except BaseException as error:
            self._over(asked, None)
            asked.set_exception(error)
            return
        answer = _Answer(told, begun, self._now())
        self._over(asked, answer)
        asked.set_result(answer)

    def _over(self, asked: Future[_Answer[Told]], answer: _Answer[Told] | None) -> None:
        with self._lock:
            if self._asked is asked:  # else it was forgotten meanwhile: only those who asked before get the answer
                self._kept, self._asked = answer or self._kept, None


class KeptSwitches:
    """Which connectors Airflow has, and which of them are off. The second is asked by itself: they are few, as a rule,
    and so it may be asked each second with any number of connectors."""

    def __init__(self) -> None:
        self._all: SharedAnswer[Mapping[str, Switch] | None] = SharedAnswer()
        self._paused: SharedAnswer[Mapping[str, Switch] | None] = SharedAnswer()

    def schedules(self, home: Path | None, settings: Settings) -> Schedules:
        """As `control.schedules`."""
        from connect_core.orchestration import control

        known = self._all.of(lambda: control.asked_switches(home, settings))
        if known is None:
            return control.schedules_of(None)
        paused = self._paused.of(lambda: control.asked_switches(home, settings, only_paused=True)) or {}
        on: dict[str, Switch] = dict.fromkeys(known, "on")
        return control.schedules_of({**on, **paused})

    def forget(self) -> None:
        """A switch was turned."""
        self._all.forget()
        self._paused.forget()


_keeping: ContextVar[KeptSwitches | None] = ContextVar("kept switches", default=None)


@contextmanager
def keeping(kept: KeptSwitches) -> Iterator[None]:
    """What is asked inside the block is asked of these."""
    before = _keeping.set(kept)
    try:
        yield
    finally:
        _keeping.reset(before)


def kept_switches() -> KeptSwitches | None:
    """None for who asks Airflow each time."""
    return _keeping.get()
