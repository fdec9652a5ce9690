"""A run adds fields to its document, or widens them, for records that do not fit: before the record the range ends, and
what is left is planned by the new revision. Nothing is lost, repeated or guessed twice, whoever dies."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from connect_core.config import ConnectorDocument
from connect_core.config.resolving import Resolved
from connect_core.config.ruling import pipeline_of
from connect_core.errors import ConfigError, EngineFailed
from connect_core.ledger import Connector, Ledger
from connect_core.observe import Step
from connect_core.replication.driver.context import RunContext
from connect_core.replication.driver.evolving import following
from connect_core.replication.driver.leases import LeaseTimes
from connect_core.sdk.values import Json
from tests.unit.replication.dying import Killed, Mortal
from tests.unit.replication.memory import MemorySink, MemorySource
from tests.unit.replication.memory_push_source import MemoryPushSource
from tests.unit.replication.world import MEMORY, DirectEngine, World

ONE, LATE, WIDE = b'{"id":1}', b'{"id":2,"late":true}', b'{"id":3000000000}'
DOCUMENT: Json = {
    "version": 1,
    "name": "orders",
    "source": {"file": {"path": "/in.log"}},
    "sink": {"file": {"path": "/out.txt"}},
    "parse": {"format": "json", "fields": {"id": "int32"}, "unknown": "evolve"},
    "encode": {"format": "json"},
}

Check = Callable[[Connector, Json], None]


@dataclass
class Evolving(World):
    """`checks` is asked before a document is stored, and may raise."""

    checks: list[Check] = field(default_factory=list)

    def context(self) -> RunContext:
        self.connector = self.ledger.connector("orders")
        return replace(
            super().context(),
            resolved=self.resolved(self.connector.revision),
            resolve=lambda revision, pinned=None: self.resolved(revision),
            check_evolved=self.check_evolved,
        )

    def resolved(self, revision: int) -> Resolved:
        document = ConnectorDocument.model_validate(self.ledger.document(self.connector.uid, revision))
        return replace(
            super().context().resolved,
            pipeline=pipeline_of(document),
            evolved=(document.parse.evolved or {}) if document.parse.evolves else None,
        )

    def check_evolved(self, old: Connector, document: Json, *, register: bool) -> Json:
        for check in self.checks:
            check(old, document)
        return document

    def fields(self) -> Json:
        found: Json = self.ledger.connector("orders").document["parse"]["fields"]
        return found

    def written(self) -> list[Any]:
        return [json.loads(value) for _, value in self.sink.rows]

    def until_done(self) -> None:
        """Runs as a command goes on."""
        self.run()
        while self.committed() < len(self.source.bodies):
            assert following(replace(self.context(), connector=self.before), 0) is not None
            self.run()

    def run(self) -> Any:
        self.before = self.ledger.connector("orders")
        return super().run()


@pytest.fixture
def world(tmp_path: Path, empty_ledger: Path) -> Iterator[Evolving]:
    shutil.copy(empty_ledger, tmp_path / "ledger.db")
    with Ledger.open(f"sqlite:///{tmp_path}/ledger.db") as ledger:
        connector = ledger.apply("orders", DOCUMENT, who="tests").connector
        source, sink = MemorySource([ONE, ONE, LATE, WIDE, LATE, ONE]), MemorySink()
        home, engine = tmp_path / "home", DirectEngine(source, sink)
        yield Evolving(ledger, connector, home, source, sink, engine, tolerance=-1)


EVOLVED = {"id": "int64", "late": "bool"}
WRITTEN = [
    {"id": 1},
    {"id": 1},
    {"id": 2, "late": True},
    {"id": 3000000000, "late": None},
    {"id": 2, "late": True},
    {"id": 1, "late": None},
]


def check(world: Evolving) -> None:
    world.check()
    assert world.fields() == EVOLVED


def test_a_range_ends_before_the_record_and_goes_on_with_a_revision_that_has_its_fields(world: Evolving) -> None:
    world.until_done()
    check(world)
    assert world.written() == WRITTEN
    assert [(one.begin, one.end, one.rejected) for one in world.receipts()] == [(0, 2, 0), (2, 6, 0)]
    first, second = world.ledger.revisions(world.connector.uid)
    assert second.who.startswith("run ")
    assert second.why == f"a record needed id: int64, late: bool: partition {MEMORY.key}, offset 2"
    assert second.document["parse"]["evolved"] == EVOLVED
    assert first.document["parse"]["fields"] == {"id": "int32"}


def test_of_a_range_that_begins_with_such_a_record_nothing_is_written_before(world: Evolving) -> None:
    world.source.bodies[:] = [LATE, ONE]
    world.until_done()
    world.check()
    assert world.written() == [{"id": 2, "late": True}, {"id": 1, "late": None}]
    assert len(world.ledger.revisions(world.connector.uid)) == 2


@pytest.mark.parametrize("first", [ONE, LATE])
@pytest.mark.parametrize("step", [*Step])
def test_a_run_that_dies_anywhere_loses_repeats_and_guesses_nothing(world: Evolving, step: Step, first: bytes) -> None:
    world.source.bodies[0] = first
    try:
        Mortal.run_of(world, step)
    except Killed:
        world.said.append("killed")
    world.until_done()
    check(world)
    assert len(world.ledger.revisions(world.connector.uid)) == 2


@pytest.mark.parametrize("rows", range(4))
def test_a_worker_that_dies_is_followed_by_one_that_ends_at_the_same_record(world: Evolving, rows: int) -> None:
    world.engine.dies_after = rows
    with pytest.raises(EngineFailed):
        world.run()
    world.until_done()
    check(world)
    assert [one.end for one in world.receipts()] == [2, 6]


def test_who_finds_the_revision_of_another_task_goes_on_with_that(world: Evolving) -> None:
    """The range is of the revision of before, and so are its fields."""
    with pytest.raises(Killed):
        Mortal.run_of(world, Step.PLANNED)
    _revise(world, {"id": "int32", "more": "text", "late": "bool"}, who="another run")
    world.until_done()
    assert world.fields() == {"id": "int64", "more": "text", "late": "bool"}
    world.check()


def test_a_task_that_was_faster_is_joined_with_and_not_undone(world: Evolving) -> None:
    def another(old: Connector, document: Json) -> None:
        world.checks.clear()
        _revise(world, {"id": "int16", "late": "bool", "theirs": "text"}, who="run of another task")

    world.checks.append(another)
    world.until_done()
    assert world.fields() == {"id": "int64", "late": "bool", "theirs": "text"}
    world.check()


def test_a_person_who_was_faster_counts(world: Evolving) -> None:
    def person(old: Connector, document: Json) -> None:
        world.checks.clear()
        world.ledger.apply("orders", _document({"id": "int64"}, unknown="reject"), who="ann")

    world.checks.append(person)
    world.run()
    assert world.fields() == {"id": "int64"}
    assert following(replace(world.context(), connector=world.before), 0) is None, "the run is over"
    world.run()
    assert [one.rejected for one in world.receipts()] == [0, 2]


def test_what_the_target_does_not_take_is_rejected_and_says_so(world: Evolving) -> None:
    def no_late(old: Connector, document: Json) -> None:
        if "late" in document["parse"]["fields"]:
            raise ConfigError("table orders has no column late")

    world.checks.append(no_late)
    world.until_done()
    assert world.fields() == {"id": "int64"}
    assert sum(one.rejected or 0 for one in world.receipts()) == 2
    [letter, _] = world.ledger.dead_letters(world.connector.uid)
    said = "Not of format json: a field that is not declared: table orders has no column late. Make room, "
    assert letter.message.startswith(said)
    assert (
        "fields: late: bool is refused, and records that need it are rejected: table orders has no column late"
        in world.said
    )
    assert [row["id"] for row in world.written()] == [1, 1, 3000000000, 1]


def test_names_that_are_data_end_at_a_limit(world: Evolving) -> None:
    world.source.bodies[:] = [b'{"id":1,"user-%d":1}' % n for n in range(70)]
    world.until_done()
    assert len(world.fields()) == 51
    assert sum(one.rejected or 0 for one in world.receipts()) == 20
    letter = world.ledger.dead_letters(world.connector.uid)[0]
    assert "runs add or widen at most 50 fields, and have: apply the document" in letter.message
    assert "user" not in letter.message


def test_what_is_no_fault_of_the_fields_rejects_nothing(world: Evolving) -> None:
    def broken(old: Connector, document: Json) -> None:
        raise ConfigError("the connection is gone")

    world.checks.append(broken)
    with pytest.raises(ConfigError, match="the connection is gone"):
        world.run()
    world.checks.clear()
    world.until_done()
    check(world)


def test_what_others_of_the_batch_need_and_cannot_have_holds_up_nobody(world: Evolving) -> None:
    def only_late(old: Connector, document: Json) -> None:
        if any(name not in ("id", "late") for name in document["parse"]["fields"]):
            raise ConfigError("no such column")

    world.checks.append(only_late)
    world.source.bodies[:] = [LATE, *(b'{"id":1,"user-%d":1}' % n for n in range(9)), LATE]
    world.until_done()
    assert [row["id"] for row in world.written()] == [2, 2]
    assert world.fields() == {"id": "int32", "late": "bool"}


def test_names_that_are_data_are_not_refused_one_by_one(world: Evolving) -> None:
    def none(old: Connector, document: Json) -> None:
        asked.append(document)
        if document is not old.document:
            raise ConfigError("no such column")

    asked: list[Json] = []
    world.checks.append(none)
    world.source.bodies[:] = [b'{"id":1,"user-%d":1}' % n for n in range(200)]
    world.until_done()
    assert sum(one.rejected or 0 for one in world.receipts()) == 200
    assert len(asked) < 150
    assert world.said.count("fields: 50 are refused: until this run ends no more are added or widened") == 1


def test_a_run_with_a_window_ends_its_range_as_well(world: Evolving) -> None:
    world.source.bodies[:] = [ONE]
    world.source.happenings = [lambda: world.source.bodies.extend([ONE, LATE, ONE])]
    world.window_s = 0.4
    world.run()
    assert world.committed() == 2
    assert world.fields() == {"id": "int32", "late": "bool"}
    world.window_s = 0
    world.run()
    world.check()


def _document(fields: Json, **parse: object) -> Json:
    return DOCUMENT | {"parse": DOCUMENT["parse"] | {"fields": fields} | parse}


def _revise(world: Evolving, fields: Json, who: str) -> None:
    evolved = {name: of for name, of in fields.items() if name != "id"}
    world.ledger.apply("orders", _document(fields, evolved=evolved), who=who)


@pytest.mark.parametrize("window_s", [0.0, 0.5])
def test_a_source_that_pushes_gives_the_record_again(world: Evolving, window_s: float) -> None:
    world.source = MemoryPushSource(list(world.source.bodies), sink=world.sink)
    world.engine = DirectEngine(world.source, world.sink)
    world.times = LeaseTimes(ttl_s=8, margin_s=1, quantum_s=5, idle_timeout_s=0.02)
    world.window_s = window_s
    world.run()
    assert (len(world.written()), world.fields()) == (2, EVOLVED)
    world.run()
    check(world)
    assert world.written() == WRITTEN
