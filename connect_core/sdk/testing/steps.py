"""Interrupts an author's code between two of its steps, also within a method. The author has nothing to do for it.

A step is a call that the author's code makes or takes, as `sys.setprofile` reports it, in this thread alone. It is
interrupted when it has done its work, or before it does anything. The author's code is whatever stands in the files in
which the classes of the sink and of its connections are written. A step is known by its place and by how often that was
passed before: it is the same one when the target holds more.
"""

from __future__ import annotations

import gc
import inspect
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any, NamedTuple

import pytest

from connect_core.sdk import kits
from connect_core.sdk.sink import Sink

_KITS = next(iter(kits.__path__))
_CALLS = ("call", "c_call")
_RETURNS = ("return", "c_return")
_TIMES = 4
"""So often a place is passed at most until it has done whatever it does in an attempt: looked, begun and written, and
come back to it."""
_LOCKS = type(threading.Lock()), type(threading.RLock())
"""Calls of these are no steps: a lock of the process dies with it."""

leaving_files_open = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
"""For a test that interrupts a step between a call of `open` and the `with` that closes what it gave."""


class Death(BaseException):
    """The process is gone. An author's `except Exception` does not see it."""


class CodeStep(NamedTuple):
    """A place in the code and in what called it, and the how manieth time it is passed, from 1."""

    event: str
    code: CodeType
    at: int
    caller: CodeType | None
    called_at: int
    time: int = 0

    def __str__(self) -> str:
        caller = self.caller.co_name if self.caller else ""
        return f"{self.event} in {self.code.co_name} called by {caller}, time {self.time}"


class Steps:
    """Notes the `passed` steps of an author's code, and raises an `error` at the one that is `at`.

    It raises when that has done its work. Where `calls` says so, it raises instead of a call of something that is not
    the author's, which has done nothing then. An `error` that does not return ends the process there.
    """

    def __init__(self, at: CodeStep | None, error: Callable[[], BaseException], *, calls: bool = False) -> None:
        self._at, self._error, self._calls = at, error, calls
        self._files: set[str] = set()
        self._times: Counter[CodeStep] = Counter()
        self.passed: list[CodeStep] = []
        """Of each place the first `_TIMES`."""
        self.raised = False

    def of(self, author: Any) -> None:
        """Counts also those of this object's classes."""
        methods = (method for cls in type(author).__mro__ for method in vars(cls).values())
        codes = (getattr(inspect.unwrap(method), "__code__", None) for method in methods if callable(method))
        files = {code.co_filename for code in codes if code}
        self._files |= {file for file in files if not file.startswith((_KITS, "<"))}

    def connection(self, connection: Any) -> Any:
        """One that a dead process calls no more."""
        self.of(connection)
        return _Line(connection, self) if self._error is Death else connection

    def sink(self, sink: Sink) -> Sink:
        self.of(sink)
        return sink

    def alive(self) -> None:
        if self.raised:
            raise self._error()

    @contextmanager
    def watched(self) -> Iterator[None]:
        """No garbage is collected meanwhile: what that calls is no step of the author's."""
        before, collecting = sys.getprofile(), gc.isenabled()
        gc.disable()
        sys.setprofile(self._step)
        try:
            yield
        finally:
            sys.setprofile(before if callable(before) else None)
            if collecting:
                gc.enable()

    def _step(self, frame: FrameType, event: str, called: object) -> None:
        if not self._is_step(frame, event, called):
            return
        back = frame.f_back
        place = CodeStep(event, frame.f_code, frame.f_lasti, back and back.f_code, back.f_lasti if back else 0)
        self._times[place] += 1
        step = place._replace(time=self._times[place])
        if step.time <= _TIMES:
            self.passed.append(step)
        if step == self._at:
            self.raised = True
            raise self._error()

    def _is_step(self, frame: FrameType, event: str, called: object) -> bool:
        if event not in (_CALLS if self._calls else _RETURNS):
            return False
        here = frame.f_code.co_filename in self._files
        if event.startswith("c_"):
            return here and not isinstance(getattr(called, "__self__", None), _LOCKS)
        if frame.f_code.co_flags & inspect.CO_GENERATOR:  # one that is interrupted here would be left half done
            return False
        from_here = frame.f_back is not None and frame.f_back.f_code.co_filename in self._files
        return from_here and not here if self._calls else here or from_here


class _Line:
    def __init__(self, connection: Any, steps: Steps) -> None:
        self._connection, self._steps = connection, steps

    def __getattr__(self, name: str) -> Any:
        self._steps.alive()
        given = getattr(self._connection, name)
        return self._around(given) if callable(given) else given

    def _around(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def called(*values: object) -> object:
            self._steps.alive()
            return method(*values)

        return called


def spread(steps: Iterable[CodeStep], most: int) -> list[CodeStep]:
    """Each of them once; of more than `most` so many, spread evenly."""
    each = [*dict.fromkeys(steps)]
    return [each[number * len(each) // most] for number in range(most)] if len(each) > most else each
