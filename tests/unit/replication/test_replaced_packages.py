"""A driver whose package was replaced while it loaded parts of it plans nothing."""

from __future__ import annotations

import pytest

from connect_core import packages
from connect_core.errors import Retriable
from connect_core.packages import Replaced
from tests.unit.replication.world import World


def test_a_driver_of_two_versions_plans_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "mixed", lambda before: [Replaced("kafka", "waybill-kafka 1.0", "waybill-kafka 1.1")])
    with pytest.raises(Retriable, match=r"kafka: waybill-kafka 1\.0 by waybill-kafka 1\.1"):
        world.run()
    assert not world.ledger.open_ranges(world.connector.uid, "live")
    monkeypatch.undo()
    world.run()
