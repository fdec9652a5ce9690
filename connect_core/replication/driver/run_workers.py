"""The workers of one task's run: they stay from one execution to the next, where the engine can have that."""

from __future__ import annotations

from contextlib import ExitStack
from types import TracebackType

from connect_core import clock
from connect_core.work import Engine, OnOtherHosts, Starting, ToStop

LIFE_S = 600.0
"""So long at most the same workers stay: what a process has lost hold of does not add up for days, and an engine that
serves many runs starts them elsewhere now and then."""


class RunWorkers:
    """Leaving the context ends them. `to_stop`: see `work.Starting`."""

    def __init__(self, engine: Engine, to_stop: ToStop) -> None:
        self._engine = self._started = engine
        self._to_stop = to_stop
        self._lanes, self._until = 0, 0.0
        self._ending = ExitStack()

    @property
    def stay(self) -> bool:
        """Whether there are workers that stay. None have when none was needed yet."""
        return self._started is not self._engine

    def ready(self, lanes: int) -> Engine:
        """The engine, with a worker for each of so many lanes. To be called before the deadline of the lanes is set: a
        start may take seconds."""
        if isinstance(self._engine, Starting) and (lanes > self._lanes or clock.monotonic() >= self._until):
            self._ending.close()
            self._lanes = 0
            self._started = self._ending.enter_context(self._engine.started(lanes, self._to_stop))
            self._lanes, self._until = lanes, clock.monotonic() + LIFE_S
        if isinstance(self._started, OnOtherHosts):
            self._started.read_clocks()
        return self._started

    @property
    def elsewhere(self) -> bool:
        """Whether one of them is on another host."""
        return isinstance(self._started, OnOtherHosts) and self._started.elsewhere

    def __enter__(self) -> RunWorkers:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._ending.__exit__(kind, error, at)
