"""Every SQLite ledger of a test process takes its compiled statements from one cache.

SQLAlchemy compiles a statement once for each engine. A process of the product has one engine; these tests make
thousands, and half of what a run between memory systems cost was to compile the same forty statements again. The cache
knows a statement by its dialect, too: so they have one dialect, which has seen a database before it is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
import sqlalchemy as sa

_create = sa.create_engine


@pytest.fixture(scope="session", autouse=True)
def statements_are_compiled_once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sa, "create_engine", _sharing)
        yield


def _sharing(url: Any, **how: Any) -> sa.Engine:
    engine = _create(url, **how)
    if engine.dialect.name == "sqlite" and "hide_parameters" in how:  # as ledgers are opened, and nothing else
        first = _first()
        engine.dialect, engine._compiled_cache = first.dialect, first._compiled_cache
    return engine


@cache
def _first() -> sa.Engine:
    engine = _create("sqlite://", connect_args={"isolation_level": None}, hide_parameters=True)
    with engine.connect():
        pass
    engine.dispose()
    return engine
