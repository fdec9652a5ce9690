"""Interrupts an author's code between two of its steps, also within a method. The author has nothing to do for it.

A step is a call that the author's code makes or takes, as `sys.setprofile` reports it, in this thread alone. The
author's code is whatever stands in the files in which the classes of the sink and of its connections are written.
"""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest

from connect_core.sdk import kits
from connect_core.sdk.sink import Sink

_KITS = next(iter(kits.__path__))
_CALLS = ("call", "c_call")
_LOCKS = type(threading.Lock()), type(threading.RLock())
"""Calls of these are no steps: a lock of the process dies with it."""

leaving_files_open = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
"""For a test that interrupts a step between a call of `open` and the `with` that closes what it gave."""


class Death(BaseException):
    """The process is gone. An author's `except Exception` does not see it."""


class Steps:
    """Counts the steps of an author's code, and raises an `error` at the one numbered `at`, from 1; at 0 never.

    `calls` are the only steps where it says so: then what raises is a call of something that is not the author's, and
    it has done nothing.
    """

    def __init__(self, at: int, error: Callable[[], BaseException], *, calls: bool = False) -> None:
        self._at, self._error, self._calls = at, error, calls
        self._files: set[str] = set()
        self.count = 0

    @property
    def raised(self) -> bool:
        return 0 < self._at <= self.count

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
        before = sys.getprofile()
        sys.setprofile(self._step)
        try:
            yield
        finally:
            sys.setprofile(before if callable(before) else None)

    def _step(self, frame: FrameType, event: str, called: object) -> None:
        if self._is_step(frame, event, called):
            self.count += 1
            if self.count == self._at:
                raise self._error()

    def _is_step(self, frame: FrameType, event: str, called: object) -> bool:
        if self._calls and event not in _CALLS:
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


def spread(total: int, most: int) -> list[int]:
    """The steps 1 to `total`; of more than `most` so many, spread evenly."""
    return sorted({1 + number * total // most for number in range(most)} if total > most else range(1, total + 1))
