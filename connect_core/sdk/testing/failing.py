"""Lets a process die, or a connection break, at any call of an author's code."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class Killed(Exception):
    """The process is no more. No kit knows this error, so nothing of it runs on."""


class Failing:
    """The first `calls` work. The next one raises `error`, before or `after` it has done its work, and so does every
    later one."""

    def __init__(self, calls: int, error: Exception, *, after: bool) -> None:
        self._left, self._error, self._after = calls, error, after

    def around(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def called(*values: object) -> object:
            self._left -= 1
            if self._left < -1 or (self._left < 0 and not self._after):
                raise self._error
            answer = method(*values)
            if self._left < 0:
                raise self._error
            return answer

        return called

    def methods(self, of: Any, *names: str) -> None:
        """These methods of an object, as it calls them itself."""
        for name in names:
            setattr(of, name, self.around(getattr(of, name)))

    def connections(self, of: Any) -> None:
        """All that an object connects to with `connect`, and connecting itself."""
        connect = of.connect

        @contextmanager
        def connecting(name: str) -> Iterator[Any]:
            with self.around(connect)(name) as connection:
                yield self.connection(connection)

        of.connect = connecting

    def connection(self, connection: Any) -> Any:
        """One that calls the methods of `connection`, as long as they work."""
        return _Line(connection, self)


class _Line:
    def __init__(self, connection: Any, failing: Failing) -> None:
        self._connection, self._failing = connection, failing

    def __getattr__(self, name: str) -> Any:
        given = getattr(self._connection, name)
        return self._failing.around(given) if callable(given) else given
