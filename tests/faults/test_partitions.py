"""One partition among several: a bad record, records that are gone, a document that names it no more. The others are
moved to their end, with the command as a user types it (delivery rules 25 and 26)."""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from connect_core.rocketmq import Client, ClientOptions, TopicConfig
from tests.faults.kit.topics import fill
from tests.faults.rows import FaultRow
from tests.servers import RocketMQ
from tests.site import Site, new_site

pytestmark = pytest.mark.fault

DATA_IS_WRONG = 5
NAMES = ("a", "b", "c", "d")
LINES = 9_000
"""More than one batch of the source."""
TOO_LONG = b"x" * 300


@dataclass
class Logs:
    """Four logs and the file that their lines go to; what stands there is read as it is, by no part of the product."""

    site: Site

    def __post_init__(self) -> None:
        for folder in ("logs", "out"):
            (self.site.folder / folder).mkdir()
        self.written = {name: [b"%s %05d" % (name.encode(), n) for n in range(LINES)] for name in NAMES}
        for name in NAMES:
            self.path(name).write_bytes(b"".join(line + b"\n" for line in self.written[name]))
        self.apply()

    def path(self, name: str) -> Path:
        return self.site.folder / "logs" / f"{name}.log"

    def apply(self, path: str = "logs/*.log", **document: Any) -> None:
        source = {"file": {"path": path, "max_line_bytes": 200}}
        self.site.apply("four", {"source": source, "sink": {"file": {"path": "out/lines.txt"}}, **document})

    def append(self, name: str, *lines: bytes) -> None:
        self.written[name] += lines
        with self.path(name).open("ab") as file:
            file.writelines(line + b"\n" for line in lines)

    def run(self, *options: str, code: int = 0) -> str:
        return self.site.waybill("run", "four", "--engine", "inline", *options, code=code)

    def moved(self) -> dict[str, list[bytes]]:
        lines = (self.site.folder / "out" / "lines.txt").read_bytes().splitlines()
        return {name: [line for line in lines if line.startswith(name.encode())] for name in NAMES}

    def states(self) -> dict[str, str]:
        told = self.site.json("connectors", "show", "four")["aside"]
        return {Path(one["partition"]).stem: one["state"] for one in told}

    def check(self, row: FaultRow, expected: dict[str, list[bytes]]) -> None:
        moved, given = self.moved(), Counter(line for lines in expected.values() for line in lines)
        there = Counter(line for lines in moved.values() for line in lines)
        row.lost, row.repeated = (given - there).total(), (there - given).total()
        row.reordered = sum(moved[name] != expected[name] for name in NAMES)
        row.duplicates = sum(
            one["duplicates"] for one in self.site.json("receipts", "four", "--last", "1000")["receipts"]
        )
        assert (row.lost, row.repeated, row.reordered, row.duplicates) == (0, 0, 0, 0)


@pytest.fixture
def logs(bare_site: Site) -> Logs:
    return Logs(bare_site)


def test_a_bad_line_of_one_file_stops_no_other(logs: Logs, row: FaultRow) -> None:
    row.describe("a line too long in one of four files", where="files → file", database="SQLite")
    row.strikes()
    logs.append("b", TOO_LONG, b"b behind")
    logs.append("d", b"d newest")
    said = logs.run(code=DATA_IS_WRONG)
    assert "b.log, offset" in said
    before = {**logs.written, "b": logs.written["b"][:LINES]}
    logs.check(row, before)
    assert logs.states() == {"b": "quarantined"}
    row.moves_again()
    logs.append("c", b"c after")
    logs.run(code=DATA_IS_WRONG)  # as often as it is tried
    logs.check(row, {**logs.written, "b": logs.written["b"][:LINES]})
    logs.apply(errors={"tolerance": "all"})
    logs.run()
    logs.check(row, {**logs.written, "b": [line for line in logs.written["b"] if line != TOO_LONG]})
    assert logs.states() == {}


@pytest.mark.fault(costly=True)
def test_a_bad_line_of_one_file_stops_no_other_in_a_window(logs: Logs, row: FaultRow) -> None:
    row.describe("a line too long in one of four files, in a window", where="files → file", database="SQLite")
    logs.run()

    def write() -> None:
        time.sleep(4)
        logs.append("b", b"b before", TOO_LONG, b"b behind")
        row.strikes()
        for number in range(20):
            for name in "acd":
                logs.append(name, b"%s later %d" % (name.encode(), number))
            time.sleep(0.2)

    somebody = threading.Thread(target=write)
    somebody.start()
    logs.run("--window", "25s", code=DATA_IS_WRONG)
    somebody.join()
    logs.check(row, {**logs.written, "b": logs.written["b"][: LINES + 1]})
    assert logs.states() == {"b": "quarantined"}


@pytest.mark.fault(costly=True)
def test_lines_that_are_gone_of_one_file_stop_no_other(logs: Logs, row: FaultRow) -> None:
    row.describe("one of four files cut below what was read", where="files → file", database="SQLite")
    logs.run()
    moved = {name: list(lines) for name, lines in logs.written.items()}
    logs.path("c").write_bytes(b"c anew\n")
    row.strikes()
    for name in "abd":
        logs.append(name, b"%s more" % name.encode())
    assert "--accept-gaps" in logs.run(code=DATA_IS_WRONG)
    logs.check(row, {**logs.written, "c": moved["c"]})
    assert logs.states() == {"c": "quarantined"}
    row.moves_again()
    logs.run("--accept-gaps")
    logs.check(row, {**logs.written, "c": [*moved["c"], b"c anew"]})
    assert logs.states() == {}


@pytest.mark.fault(costly=True)
def test_what_was_open_when_the_document_was_changed_is_finished_and_nothing_else(logs: Logs, row: FaultRow) -> None:
    row.describe("SIGKILL of the worker, then another path in the document", where="files → file", database="SQLite")
    logs.apply("logs/[ab].log")
    logs.site.fault("batch-written", "kill", 1)
    row.strikes()
    process = logs.site.start("run", "four", "--engine", "inline")
    process.communicate(timeout=120)
    assert process.returncode != 0
    logs.append("a", b"a behind the open range")
    logs.append("b", b"b behind the open range")
    logs.apply("logs/[cd].log")
    logs.run()
    row.moves_again()
    logs.check(row, {**logs.written, "a": logs.written["a"][:LINES], "b": logs.written["b"][:LINES]})
    assert logs.states() == {"a": "retired", "b": "retired"}
    assert "is retired" not in logs.run()
    logs.apply()
    logs.run()
    logs.check(row, logs.written)
    assert logs.states() == {}


# -------------------------------------------------------------------------------------------------------------- queues


@dataclass
class Queues:
    """A topic of four queues and the file that its messages go to."""

    site: Site
    client: Client

    def send(self, word: bytes, queues: int = 4) -> None:
        fill(self.site.name_servers, self.site.topic, [[b"%d %s" % (queue, word)] for queue in range(queues)])

    def keep(self, queues: int) -> None:
        """The topic has so many queues from now on."""
        broker = self.client.topics.read_queues(self.site.topic)[0].broker
        self.client.topics.put(TopicConfig(self.site.topic, queues, queues), broker)

    def run(self, *options: str, code: int = 0) -> str:
        return self.site.waybill("run", "queues", "--engine", "inline", *options, code=code)

    def moved(self) -> list[bytes]:
        return sorted((self.site.folder / "out" / "lines.txt").read_bytes().splitlines())


@pytest.fixture
def queues(tmp_path: Path, rocketmq: RocketMQ) -> Any:
    site = new_site(tmp_path, f"sqlite:///{tmp_path}/.waybill/ledger.db", None)
    site.name_servers.extend(rocketmq.name_servers)
    (tmp_path / "out").mkdir()
    servers = ";".join(rocketmq.name_servers)
    with Client(ClientOptions(name_servers=tuple(rocketmq.name_servers))) as client:
        made = Queues(site, client)
        made.send(b"first")
        source = {"rocketmq": {"name_servers": servers, "topics": [site.topic]}}
        site.apply("queues", {"source": source, "sink": {"file": {"path": "out/lines.txt"}}})
        yield made
        client.topics.delete(site.topic)


def all_of(word: bytes, queues: int = 4) -> list[bytes]:
    return [b"%d %s" % (queue, word) for queue in range(queues)]


@pytest.mark.server
@pytest.mark.parametrize("window", [(), ("--window", "8s")], ids=["closed", "window"])
def test_messages_that_are_gone_of_one_queue_stop_no_other(
    queues: Queues, row: FaultRow, window: tuple[str, ...]
) -> None:
    row.describe(f"one of four queues closed, unread{', in a window' * bool(window)}", where="RocketMQ → file")
    queues.run()
    queues.send(b"second")
    row.strikes()
    queues.keep(3)
    assert "closed: from 1 to 2" in queues.run(*window, code=DATA_IS_WRONG)
    row.moves_again()
    assert queues.moved() == sorted([*all_of(b"first"), *all_of(b"second", 3)])
    [aside] = queues.site.json("plan", "queues")["partitions"][3:]
    assert (aside["state"], aside["lag"]) == ("quarantined", 0)
    queues.run("--accept-gaps")
    queues.send(b"third", 3)
    queues.run()
    assert queues.moved() == sorted([*all_of(b"first"), *all_of(b"second", 3), *all_of(b"third", 3)])
    row.lost = row.repeated = row.reordered = row.duplicates = 0


@pytest.mark.server
@pytest.mark.fault(costly=True)
def test_a_queue_that_is_closed_when_it_was_read_has_ended(queues: Queues, row: FaultRow) -> None:
    row.describe("one of four queues closed when it was read", where="RocketMQ → file", database="SQLite")
    queues.run()
    row.strikes()
    queues.keep(3)
    queues.send(b"second", 3)
    assert "is gone; it was read to" in stderr_of(queues, "run", "queues", "--engine", "inline")
    row.moves_again()
    assert "is gone; it was read to" not in stderr_of(queues, "run", "queues", "--engine", "inline")
    [ended] = queues.site.json("connectors", "show", "queues")["aside"]
    assert (ended["state"], ended["reason"]) == ("ended", "closed")
    queues.keep(4)
    queues.send(b"third")
    queues.run()
    assert queues.moved() == sorted([*all_of(b"first"), *all_of(b"second", 3), *all_of(b"third")])
    assert queues.site.json("connectors", "show", "queues")["aside"] == []
    row.lost = row.repeated = row.reordered = row.duplicates = 0


def stderr_of(queues: Queues, *words: str) -> str:
    process = queues.site.start(*words)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    return said
