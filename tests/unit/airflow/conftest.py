"""The connector in memory of the replication tests."""

from __future__ import annotations

from tests.unit.replication.conftest import world

__all__ = ["world"]
