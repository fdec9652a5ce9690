"""A connection to a database that stays between two questions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any


class KeptConnection:
    """It is made when something is asked, and stays until something goes wrong. `understood` raises what driver and
    worker know instead of what the driver of the database raises."""

    def __init__(self, connect: Callable[[], Any], understood: Callable[[], AbstractContextManager[None]]) -> None:
        self._connect, self._understood = connect, understood
        self._database: Any = None

    @contextmanager
    def asking(self) -> Iterator[Any]:
        """A cursor."""
        try:
            if self._database is None:
                self._database = self._connect()
            with self._understood(), self._database.cursor() as asking:
                yield asking
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if self._database is not None:
            self._database.close()
        self._database = None
