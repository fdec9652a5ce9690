"""The classes of RocketMQ Connect: the page and the code say the same, and what is taken is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from connect_core.config.flat import class_named, classes, translate
from connect_core.config.peers.connector_classes import CLASSES, PeerConnector, page_rows, peer_class

PAGE = Path(__file__).parents[3] / "docs" / "coming-from-rocketmq-connect.md"


def test_the_page_has_the_table_as_the_code_has_it() -> None:
    _, _, part = PAGE.read_text().partition("## Its connectors\n")
    table = [line for line in part.partition("\n## ")[0].splitlines() if line.startswith("|")]
    assert table == list(page_rows())


def test_each_class_is_there_once() -> None:
    names = [one.name for one in CLASSES]
    assert len(set(names)) == len(names) == 43


def test_what_is_not_planned_says_why_and_nothing_else_does() -> None:
    assert {one.here for one in CLASSES if one.why} == {"not planned"}
    assert all(one.why for one in CLASSES if one.here == "not planned")
    faults = [fault.message for fault in translate({"connector.class": "CassandraSource"}, "some").faults]
    assert any("not planned (outside of what is replicated here" in message for message in faults)


@pytest.mark.parametrize("one", CLASSES, ids=lambda one: one.name)
def test_what_is_taken_is_there_and_nothing_else_is(one: PeerConnector) -> None:
    found = class_named(one.name)
    assert (found is not None and f"{found.package}{found.name}" == one.name) == (one.here == "taken")
    faults = [fault.message for fault in translate({"connector.class": one.name}, "some").faults]
    assert any(one.row in message for message in faults) == (one.here != "taken")


def test_a_class_of_its_packages_that_is_taken_is_in_the_table() -> None:
    ours = {f"{one.package}{one.name}" for one in classes() if one.package.startswith("org.apache.rocketmq.")}
    formerly = {name for name in ours if ".jdbc.mysql." in name}
    """A package that the pages of its modules name, and its code does not have."""
    assert ours - formerly == {one.name for one in CLASSES if one.here == "taken"}


@pytest.mark.parametrize("given", ["RedisSource", "RedisSourceConnector", "org.apache.rocketmq.connect.redis"])
def test_a_class_is_found_as_documents_may_name_it(given: str) -> None:
    found = peer_class(given)
    assert (found is None) == given.startswith("org.")
