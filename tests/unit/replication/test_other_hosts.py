"""A run with workers on other hosts: in what order clocks are read and leases renewed, and what may not be moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from connect_core.clock import now_ns
from connect_core.errors import ConfigError, EngineFailed
from connect_core.ledger import LeaseState, task_lease_id
from connect_core.replication.driver.other_hosts import require_reachable
from connect_core.replication.host import has_lanes_elsewhere, host_identity
from connect_core.work import Lane, Outcome, Side
from tests.unit.replication.world import MEMORY, DirectEngine, World

ROCKETMQ = Side("rocketmq", {"name_servers": ["127.0.0.1:9876"], "topic": "t"})


@dataclass
class EngineElsewhere(DirectEngine):
    """Its workers are on another host, as it says."""

    read_ns: list[int] = field(default_factory=list)
    leases: list[LeaseState | None] = field(default_factory=list)
    world: World | None = None
    fails: bool = False
    elsewhere: bool = True

    def read_clocks(self) -> None:
        self.read_ns.append(now_ns())

    def execute(self, lanes: Sequence[Lane]) -> list[Outcome]:
        assert self.world is not None
        ledger, uid = self.world.ledger, self.world.connector.uid
        self.leases.append(ledger.lease(task_lease_id(uid, "live", ledger.assignment(uid).version, 0)))
        if self.fails:
            raise EngineFailed("a line was cut")
        return super().execute(lanes)


@pytest.fixture
def engine(world: World) -> EngineElsewhere:
    made = EngineElsewhere(world.source, world.sink, world=world)
    world.engine = made
    return made


def test_clocks_are_read_before_the_lease_is_renewed_and_its_row_says_where_lanes_are(
    world: World, engine: EngineElsewhere
) -> None:
    """A driver that stands still between the two sends lanes that refuse: the clocks there have gone on."""
    world.run()
    world.check()
    [lane], [seen] = engine.lanes, engine.leases
    assert seen is not None
    assert has_lanes_elsewhere(seen.boot_id)
    assert seen.deadline_ns == lane.deadline_ns
    renewed_ns = lane.deadline_ns - int((world.times.ttl_s - world.times.margin_s) * 1e9)
    assert engine.read_ns[0] <= renewed_ns


def test_after_a_failure_the_lease_is_held_until_the_deadline_of_the_lanes(
    world: World, engine: EngineElsewhere
) -> None:
    engine.fails = True
    with pytest.raises(EngineFailed):
        world.run()
    [seen] = engine.leases
    assert seen is not None
    assert now_ns() >= seen.deadline_ns
    engine.fails = False
    world.run()
    world.check()


def test_the_row_of_a_run_says_how_it_took_over_from_one_that_was_killed(world: World, engine: EngineElsewhere) -> None:
    ledger, uid = world.ledger, world.connector.uid
    version = ledger.assign(uid, [MEMORY], 1).version
    lease_id = task_lease_id(uid, "live", version, 0)
    gone = ledger.take(lease_id, None, "gone", uid=uid, version=version)
    ledger.renew(gone, boot_id=host_identity(world.home, lanes_elsewhere=True), deadline_ns=now_ns(), ttl_s=1)
    world.run()
    [run] = ledger.runs(uid)
    assert run.summary is not None
    [taken] = run.summary["taken_over"]
    assert (taken["lease_id"], taken["by"]) == (lease_id, "silence")
    assert taken["waited_s"] >= world.times.ttl_s


def test_workers_beside_their_driver_are_as_before(world: World, engine: EngineElsewhere) -> None:
    engine.elsewhere = False
    world.run()
    [seen] = engine.leases
    assert seen is not None
    assert not has_lanes_elsewhere(seen.boot_id)


@pytest.mark.parametrize(
    ("source", "sink", "named"),
    [
        (Side("file", {"path": "/logs/*.log"}), ROCKETMQ, "source.file.path"),
        (ROCKETMQ, Side("file", {"path": "/out/lines.txt"}), "sink.file.path"),
    ],
)
def test_files_are_not_moved_on_other_hosts(tmp_path: Path, source: Side, sink: Side, named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        require_reachable(source, sink, "connector c")


def test_files_are_read_on_other_hosts_that_share_them_and_the_error_says_how_to_state_that() -> None:
    logs = {"path": "/logs/*.log"}
    with pytest.raises(ConfigError) as told:
        require_reachable(Side("file", logs), ROCKETMQ, "connector c")
    assert "source.file.shared: true" in (told.value.next_step or "")
    require_reachable(Side("file", {**logs, "shared": True}), ROCKETMQ, "connector c")


def test_files_are_not_written_on_other_hosts_whoever_shares_them() -> None:
    shared = Side("file", {"path": "/logs/*.log", "shared": True})
    with pytest.raises(ConfigError, match="may reach the file after the next worker has written there") as told:
        require_reachable(shared, Side("file", {"path": "/out/lines.txt"}), "connector c")
    assert "shared: true" not in (told.value.next_step or "")


def test_servers_are_reached_from_any_host() -> None:
    require_reachable(ROCKETMQ, ROCKETMQ, "connector c")


@pytest.mark.parametrize("role", ["source", "sink"])
def test_a_database_that_is_a_file_is_reached_by_no_worker_elsewhere(role: str) -> None:
    file = Side("sql", {"url": "sqlite:////data/shop.db", "table": "t"})
    source, sink = (file, ROCKETMQ) if role == "source" else (ROCKETMQ, file)
    with pytest.raises(ConfigError, match=rf"A file of the driver's host is named, .*: {role}\.sql\.url"):
        require_reachable(source, sink, "connector a")
    server = Side("sql", {"url": "mssql+pyodbc://db/shop", "table": "t"})
    require_reachable(server, ROCKETMQ, "connector a")
