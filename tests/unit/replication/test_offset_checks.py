"""A place that a person names for a partition: where that begins, and what is known there."""

from __future__ import annotations

from pathlib import Path

import pytest

from connect_core.errors import ConfigError
from connect_core.replication.driver.offset_checks import checked_position
from connect_core.sdk.values import Position
from connect_core.systems.file.options import FileSourceOptions
from connect_core.systems.file.source import FileSource
from tests.unit.replication.memory_push_source import MemoryPushSource
from tests.unit.replication.world import MEMORY


@pytest.mark.parametrize("offset", [5, 2, 9])
def test_what_is_known_of_a_session_stays_known_where_its_offset_is_set(offset: int) -> None:
    """That a session is lost, and that a message comes again, is told by it: also where a range is given up."""
    before = Position(0, 5, {"subscribed": ["a/#"], "entries": 3})
    found = checked_position(MemoryPushSource([]), MEMORY, before, offset, "here")
    assert found == Position(0, offset, before.evidence)


def test_the_offset_of_a_part_that_was_never_read_is_not_set_before_it(tmp_path: Path) -> None:
    """What stands before it in the file is another part's."""
    log = tmp_path / "app.log"
    log.write_bytes(b"line\n" * 40)
    source = FileSource(
        FileSourceOptions.model_validate({"path": str(log), "parallel": True, "sub_partition_bytes": 100})
    )
    first, second = sorted(source.partitions([]))
    assert "#100-" in second.key
    with pytest.raises(ConfigError, match="Choose one from 100 to 200"):
        checked_position(source, second, None, 0, "here")
    assert checked_position(source, second, None, 105, "here").offset == 105
    assert checked_position(source, first, None, 0, "here").offset == 0
