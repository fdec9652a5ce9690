"""A record that a real broker refuses for good: in a window, since a run asks its brokers for their limits when it
begins."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from connect_core.rocketmq import Client, ClientOptions, TopicMissing
from tests.faults.kit.processes import wait_for
from tests.faults.kit.topics import records_of
from tests.servers import RocketMQ
from tests.site import Site, new_site

pytestmark = pytest.mark.server

DATA_IS_WRONG = 5
LIMIT_BYTES = 20_000
TOO_LARGE = b"a " + b"x" * 60_000


@dataclass
class Lines:
    """Two logs, a queue for each; what stands in the topic is read by no part of the product but its client."""

    site: Site

    def __post_init__(self) -> None:
        (self.site.folder / "logs").mkdir()
        self.written: dict[bytes, list[bytes]] = {b"a": [], b"b": []}
        self.append(b"a", *numbered(b"a", 0, 100))
        self.append(b"b", *numbered(b"b", 0, 100))

    def append(self, name: bytes, *lines: bytes) -> None:
        self.written[name] += lines
        with (self.site.folder / "logs" / f"{name.decode()}.log").open("ab") as file:
            file.writelines(line + b"\n" for line in lines)

    def apply(self, **document: Any) -> None:
        place = {"name_servers": ";".join(self.site.name_servers), "topic": self.site.topic, "queues": 2}
        source = {"file": {"path": "logs/*.log"}}
        self.site.apply("lines", {"source": source, "sink": {"rocketmq": place}, **document})

    def moved(self, name: bytes) -> list[bytes]:
        try:
            there = records_of(self.site.name_servers, self.site.topic)
        except TopicMissing:
            return []
        return [line for lines in there.values() for line in lines if line.startswith(name)]

    def states(self) -> dict[str, str]:
        told = self.site.json("connectors", "show", "lines")["aside"]
        return {Path(one["partition"]).stem: one["state"] for one in told}


def numbered(name: bytes, begin: int, end: int) -> list[bytes]:
    return [b"%s %05d" % (name, n) for n in range(begin, end)]


@pytest.fixture
def lines(tmp_path: Path, rocketmq: RocketMQ) -> Lines:
    site = new_site(tmp_path, f"sqlite:///{tmp_path}/.waybill/ledger.db", None)
    site.name_servers.extend(rocketmq.name_servers)
    return Lines(site)


@contextmanager
def smaller_messages(lines: Lines) -> Iterator[None]:
    """The brokers take smaller ones than they said."""
    with Client(ClientOptions(name_servers=tuple(lines.site.name_servers))) as client:
        brokers = {name: client.brokers.settings(name)["maxMessageSize"] for name in client.brokers.masters()}
        for name in brokers:
            client.brokers.change_settings(name, {"maxMessageSize": str(LIMIT_BYTES)})
        try:
            yield
        finally:
            for name, before in brokers.items():
                client.brokers.change_settings(name, {"maxMessageSize": before})


def window_in_which_one_is_refused(lines: Lines, rest: int) -> tuple[int, str]:
    """Its exit code, and what it said. `rest` records of the first partition can be moved."""
    window = lines.site.start("run", "lines", "--engine", "inline", "--window", "10m")
    try:
        wait_for(lambda: lines.moved(b"b")[99:] and lines.moved(b"a")[99:], "what was there before")
        with smaller_messages(lines):
            lines.append(b"a", *numbered(b"a", 100, 120), TOO_LARGE, *numbered(b"a", 120, 140))
            lines.append(b"b", *numbered(b"b", 100, 120))
            wait_for(lambda: lines.moved(b"b")[119:], "the other partition")
            lines.append(b"b", *numbered(b"b", 120, 140))
            wait_for(lambda: lines.moved(b"b")[139:], "what came later to the other partition")
            wait_for(lambda: lines.moved(b"a")[rest - 1 :], "what there is of this one")
            lines.site.waybill("connectors", "pause", "lines")
            _, said = window.communicate(timeout=120)
        lines.site.waybill("connectors", "resume", "lines")
    finally:
        window.kill()
        window.communicate()
    return window.returncode, said


def test_it_stops_its_own_partition_and_nothing_stands_behind_it(lines: Lines) -> None:
    lines.apply()
    code, said = window_in_which_one_is_refused(lines, 120)
    assert code == DATA_IS_WRONG, said
    assert "stage write" in said
    assert lines.moved(b"b") == lines.written[b"b"]
    assert lines.moved(b"a") == numbered(b"a", 0, 120)
    assert lines.states() == {"a": "quarantined"}
    lines.site.waybill("run", "lines", "--engine", "inline")  # the brokers take as much as they did
    assert lines.moved(b"a") == lines.written[b"a"]
    assert lines.states() == {}


def test_where_it_is_tolerated_it_is_a_dead_letter(lines: Lines) -> None:
    lines.apply(errors={"tolerance": "all"})
    code, said = window_in_which_one_is_refused(lines, 140)
    assert code == 0, said
    assert lines.moved(b"b") == lines.written[b"b"]
    assert lines.moved(b"a") == [line for line in lines.written[b"a"] if line != TOO_LARGE]
    [letter] = lines.site.json("dead-letters", "list", "lines")["dead_letters"]
    assert (letter["stage"], letter["kind"]) == ("write", "MessageIllegal")
    receipts = lines.site.json("receipts", "lines", "--last", "1000")["receipts"]
    assert (sum(one["rejected"] for one in receipts), sum(one["duplicates"] for one in receipts)) == (1, 0)
