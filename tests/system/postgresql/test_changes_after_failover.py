"""A server that has taken over with the log of another one: on a timeline of its own."""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from connect_core import stack
from connect_core.stack import postgresql
from tests.faults.kit.processes import wait_for
from tests.postgres_tables import Database
from tests.site import Site
from tests.table_connectors import run

pytestmark = pytest.mark.server

SETTINGS = {"wal_level": "logical", "fsync": "off", "restore_command": "false"}


class Server:
    """One of its own, which can be put back to what it was, and promoted."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.up()
        found = stack.load(home)
        assert found is not None
        self.url = found.database_url
        self.database = Database(self.url)
        [(folder,)] = self.database.run("SHOW data_directory")
        self.data = Path(folder)

    def up(self) -> None:
        options = stack.Options(well_known_ports=False, postgresql=SETTINGS)
        stack.up(self.home, parts=(stack.POSTGRESQL,), supervise=False, options=options)

    def kept(self) -> Path:
        """A copy of all that it has now, of a server that does not run."""
        copy = self.data.with_name("kept")
        shutil.copytree(self.data, copy, symlinks=True, copy_function=_copied)
        _owned_as(self.data, copy)
        return copy

    def put_back(self, copy: Path) -> None:
        shutil.rmtree(self.data)
        copy.rename(self.data)

    def standing_by(self) -> None:
        """It begins as a standby, and stays one."""
        self._begin("standby.signal")

    def promoted(self) -> None:
        """It begins as a standby whose primary is gone."""
        self._begin("recovery.signal")
        wait_for(lambda: self.database.run("SELECT pg_is_in_recovery()") == [(False,)], "the promotion")

    def _begin(self, as_: str) -> None:
        signal = self.data / as_
        signal.touch()
        _owned_as(self.data, signal)
        self.up()


def _copied(source: str, target: str) -> str:
    shutil.copy2(source, target)
    _owned_as(Path(source), Path(target))
    return target


def _owned_as(one: Path, other: Path) -> None:
    for place in (other, *(found for found in other.rglob("*") if found.is_dir())) if other.is_dir() else (other,):
        os.chown(place, one.stat().st_uid, one.stat().st_gid)


@pytest.fixture
def server(worker_folder: Path) -> Iterator[Server]:
    yield from served(worker_folder)


def served(worker_folder: Path) -> Iterator[Server]:
    home = worker_folder / f"failover-{uuid.uuid4().hex[:8]}" / ".waybill"
    made = Server(home)
    yield made
    stack.down(home)
    postgresql.forget(home)
    shutil.rmtree(home.parent, ignore_errors=True)


def begun(site: Site, server: Server) -> None:
    server.database.run("CREATE TABLE orders (id int PRIMARY KEY)")
    site.apply("a", {"source": server.database.changes("orders"), "sink": {"file": {"path": "out.jsonl"}}})
    run(site)


def arrived(site: Site) -> list[int]:
    return [json.loads(line)["after"]["id"] for line in (site.folder / "out.jsonl").read_text().splitlines()]


def test_changes_continue_where_the_other_timeline_has_all_that_was_read(bare_site: Site, server: Server) -> None:
    begun(bare_site, server)
    server.database.run("INSERT INTO orders VALUES (1)")
    run(bare_site)
    server.database.run("INSERT INTO orders VALUES (2)")
    stack.down(server.home)
    server.promoted()
    assert server.database.run("SELECT substr(pg_walfile_name(pg_current_wal_lsn()), 8, 1)") == [("2",)]
    server.database.run("INSERT INTO orders VALUES (3)")
    run(bare_site)
    server.database.run("INSERT INTO orders VALUES (4)")
    run(bare_site)
    assert arrived(bare_site) == [1, 2, 3, 4]


def test_a_server_that_was_put_back_to_an_older_state_is_a_loss(bare_site: Site, server: Server) -> None:
    """On the same timeline, with the slot as it was then."""
    begun(bare_site, server)
    server.database.run("INSERT INTO orders VALUES (1)")
    run(bare_site)
    stack.down(server.home)
    copy = server.kept()
    server.up()
    server.database.run("INSERT INTO orders SELECT generate_series(1000, 9999)")
    run(bare_site)
    stack.down(server.home)
    server.put_back(copy)
    server.up()
    server.database.run("INSERT INTO orders VALUES (2)")
    assert "was put back to what it was before" in run(bare_site, code=5)
    run(bare_site, "--accept-gaps")
    server.database.run("INSERT INTO orders VALUES (3)")
    run(bare_site)
    assert [number for number in arrived(bare_site) if number < 1000] == [1, 2, 3]


def test_a_standby_that_lacks_what_was_read_is_a_loss(bare_site: Site, server: Server) -> None:
    begun(bare_site, server)
    server.database.run("INSERT INTO orders VALUES (1)")
    run(bare_site)
    stack.down(server.home)
    copy = server.kept()
    server.up()
    server.database.run("INSERT INTO orders VALUES (2)")
    run(bare_site)
    stack.down(server.home)
    server.put_back(copy)
    server.promoted()
    server.database.run("INSERT INTO orders VALUES (3)")
    assert "lacks what was read last" in run(bare_site, code=5)
    run(bare_site, "--accept-gaps")
    server.database.run("INSERT INTO orders VALUES (4)")
    run(bare_site)
    assert arrived(bare_site) == [1, 2, 3, 4]
