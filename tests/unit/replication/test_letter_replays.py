"""How a replay of dead letters begins: what it asks of the document of today before any letter is taken."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from connect_core import systems
from connect_core.config import load_settings
from connect_core.errors import ConfigError
from connect_core.ledger import Backfill, LetterChoice, Wanted
from connect_core.replication.backfill.letters import begun_letters
from connect_core.replication.driver.context import RunContext
from connect_core.sdk.records import Partition
from tests.unit.replication.test_backfill_start import whole

__all__ = ["whole"]


def begin(live: RunContext, partition: str) -> Backfill | None:
    choice = LetterChoice(((Partition(partition), 1),), (), (), {}, 1)
    return begun_letters(live, load_settings(), Wanted(), choice, again=False, sink={}, asked={}, who="ann", why="")


def test_letters_that_are_gone_meanwhile_begin_nothing(whole: RunContext) -> None:
    assert begin(whole, "app.log") is None
    assert whole.ledger.backfills(whole.connector.uid) == []


def test_a_sink_that_knows_the_newer_record_by_its_offset_is_refused(
    whole: RunContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(systems, "sink", lambda side: SimpleNamespace(by_offset=True))
    with pytest.raises(ConfigError, match="numbered in another order"):
        begin(whole, "app.log")


def test_a_partition_of_another_kind_of_source_is_refused(whole: RunContext, monkeypatch: pytest.MonkeyPatch) -> None:
    def topic(partition: Partition) -> str:
        raise ValueError(f"{partition.key} is no queue")

    monkeypatch.setattr(systems, "source", lambda side, resources: SimpleNamespace(topic=topic))
    with pytest.raises(ConfigError, match=r"app.log is no partition of a source file"):
        begin(whole, "app.log")
