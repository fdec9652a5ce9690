"""A home of its own for each test: what a user has after `waybill dev up`, on the session's servers.

`site` has a ledger on PostgreSQL, `sqlite_site` one in a file; both have the session's broker and Spark engine.
`bare_site` has no server at all: a ledger in a file, and runs with `--engine inline` between files.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as sa
import yaml
from sqlalchemy.engine import make_url

from connect_core import ledger, stack
from connect_core.engine import inline
from connect_core.errors import WaybillError
from connect_core.rocketmq import Client, ClientOptions, Queue
from connect_core.stack import record
from tests import warm
from tests.servers import RocketMQ

# Long enough for a loaded machine: a first send may take seconds there.
SETTINGS = {
    "WAYBILL_QUANTUM_S": "3s",
    "WAYBILL_LEASE_TTL_S": "20s",
    "WAYBILL_LEASE_MARGIN_S": "6s",
    "WAYBILL_SEND_TIMEOUT_S": "6s",
}


_IN_A_FILE = "sqlite:///"


@dataclass
class Site:
    """A folder with a home. `waybill` runs the command as a user does and gives back what it printed."""

    folder: Path
    topic: str
    name_servers: list[str]
    database_url: str
    settings: dict[str, str] = field(default_factory=lambda: dict(SETTINGS))

    @property
    def home(self) -> Path:
        return self.folder / ".waybill"

    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            **self.settings,
            "WAYBILL_HOME": str(self.home),
            "WAYBILL_DATABASE_URL": self.database_url,
        }

    def start(self, *words: str, before: Sequence[str] = ()) -> subprocess.Popen[str]:
        """`before` is a command that starts ours, as `nice` does."""
        command = [*before, str(Path(sys.executable).with_name("waybill")), *words]
        if not before:
            return warm.session().start(command, self.folder, self.environment())
        return subprocess.Popen(
            command, cwd=self.folder, env=self.environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    def waybill(self, *words: str, code: int = 0) -> str:
        with self.start(*words) as process:
            try:
                out, err = process.communicate(timeout=240)
            finally:
                process.kill()
        assert process.returncode == code, f"waybill {' '.join(words)} ended with {process.returncode}:\n{out}{err}"
        if words[0] in {"run", "backfill"}:
            self._wait_until_visible()
        return out if code == 0 else err

    def json(self, *words: str) -> dict:  # type: ignore[type-arg]
        return json.loads(self.waybill(*words, "--json"))

    def apply(self, name: str, document: dict) -> None:  # type: ignore[type-arg]
        self.apply_all({name: document})

    def apply_all(self, documents: dict[str, dict]) -> None:  # type: ignore[type-arg]
        """Documents by name, with one command."""
        paths = [self.folder / f"{name}.yaml" for name in documents]
        for path, (name, document) in zip(paths, documents.items(), strict=True):
            path.write_text(yaml.safe_dump({"version": 1, "name": name, **document}))
        self.waybill("apply", *map(str, paths))

    def fault(self, step: str, action: str = "kill", passes: int = 0) -> Path:
        """The next process that reaches the step (after letting it pass `passes` times) gets the signal."""
        path = self.home / "faults" / step
        path.parent.mkdir(exist_ok=True)
        path.with_name(f"{step}.taken").unlink(missing_ok=True)
        fresh = path.with_name(f"{step}.fresh")
        fresh.write_text(f"{action} {passes}")
        fresh.rename(path)
        return path

    def _wait_until_visible(self) -> None:
        """A broker shows what it has acknowledged a moment later (delivery rule 4), and tests look at once. Whether
        there is a broker, and lets us write, is not the question here."""
        with suppress(WaybillError), Client(ClientOptions(name_servers=tuple(self.name_servers))) as client:
            for broker in client.brokers.masters():
                client.barrier(broker, deadline=time.monotonic() + 10)

    def messages(self) -> list[bytes]:
        """Every body in the topic, queue by queue, read by the client library without any part of the product above."""
        self._wait_until_visible()
        bodies = []
        with Client(ClientOptions(name_servers=tuple(self.name_servers))) as client:
            for queue, bounds in sorted(self._bounds(client).items(), key=lambda pair: pair[0].queue_id):
                for part in client.read(queue, bounds[0], bounds[1], deadline=time.monotonic() + 60):
                    bodies += [bytes(message.body) for message in part.messages]
        return bodies

    def _bounds(self, client: Client) -> dict[Queue, tuple[int, int]]:
        return {queue: (seen.begin, seen.end) for queue, seen in client.offsets.bounds(self.topic).items()}


@pytest.fixture
def warm_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lanes of the inline engine are forked; `tests/system/engine/test_inline.py` starts them as users do."""
    forking = SimpleNamespace(Popen=lambda command, **how: warm.session().popen(command, **how))
    monkeypatch.setattr(inline, "subprocess", forking)


@pytest.fixture
def warm_operations(monkeypatch: pytest.MonkeyPatch, warm_lanes: None) -> None:
    """So are operations of a server; `tests/system/replication/test_rest_api.py` starts them as users do."""

    def run(command: Sequence[str], **how: Any) -> subprocess.CompletedProcess[Any]:
        start = warm.session().run if warm.OPERATION in command else subprocess.run
        return start(command, **how)

    forking = SimpleNamespace(run=run, DEVNULL=subprocess.DEVNULL)
    monkeypatch.setattr("connect_core.service.operations.subprocess", forking)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish() -> None:
    warm.close()


@pytest.fixture
def site(
    tmp_path: Path, rocketmq: RocketMQ, postgres_url: str, spark_remote: str, new_database: Callable[[str], str]
) -> Site:
    """Ledger in a database of its own on the embedded PostgreSQL."""
    return new_site(tmp_path, new_database(postgres_url), rocketmq)


@pytest.fixture
def sqlite_site(tmp_path: Path, rocketmq: RocketMQ, spark_remote: str) -> Site:
    """Ledger in a file of the home."""
    return new_site(tmp_path, f"sqlite:///{tmp_path}/.waybill/ledger.db", rocketmq)


@pytest.fixture
def bare_site(tmp_path: Path) -> Site:
    """No server: for connectors from file to file, run by the inline engine, with the ledger in a file."""
    return new_site(tmp_path, f"sqlite:///{tmp_path}/.waybill/ledger.db", None)


def new_site(folder: Path, database_url: str, rocketmq: RocketMQ | None, engine_home: Path | None = None) -> Site:
    """A home on these servers; the engine is the session's, or the one of another home."""
    home = folder / ".waybill"
    home.mkdir()
    if rocketmq is not None:
        _borrow_servers(home, rocketmq, engine_home or _session_engine())
    site = Site(folder, f"t-{uuid.uuid4().hex[:12]}", rocketmq.name_servers if rocketmq else [], database_url)
    if database_url.startswith(_IN_A_FILE):
        shutil.copy(_empty_ledger(), database_url.removeprefix(_IN_A_FILE))
    else:
        ledger.upgrade(database_url)
    return site


@cache
def _empty_ledger() -> Path:
    """A SQLite ledger with current tables, to be copied: to migrate one takes longer."""
    folder = Path(os.environ["WAYBILL_TEST_SESSION"]) / os.environ.get("PYTEST_XDIST_WORKER", "single")
    folder.mkdir(exist_ok=True)
    path = folder / "empty-ledger.db"
    ledger.upgrade(f"{_IN_A_FILE}{path}")
    return path


@pytest.fixture(scope="session")
def new_database() -> Callable[[str], str]:
    """Makes a database with a ledger of current tables beside the given one; returns its URL. Each is a copy of the
    first: to migrate one takes longer."""
    firsts: dict[str, str] = {}

    def make(beside: str) -> str:
        if beside not in firsts:
            firsts[beside] = _new_database(beside, "template1")
            ledger.upgrade(firsts[beside])
        return _new_database(beside, make_url(firsts[beside]).database)

    return make


def _new_database(beside: str, copied: str | None) -> str:
    name = f"ledger_{uuid.uuid4().hex[:12]}"
    engine = sa.create_engine(beside, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sa.text(f"CREATE DATABASE {name} TEMPLATE {copied}"))
    engine.dispose()
    return make_url(beside).set(database=name).render_as_string(hide_password=False)


def _session_engine() -> Path:
    return Path(os.environ["WAYBILL_TEST_SESSION"]) / "shared" / "engine" / ".waybill"


def _borrow_servers(home: Path, rocketmq: RocketMQ, engine_home: Path) -> None:
    """A record of the stack that names these servers, so that commands find them as in any home."""
    engine, brokers = record.load(engine_home), record.load(rocketmq.home)
    assert engine is not None
    assert brokers is not None
    parts = {**brokers.parts, stack.ENGINE: engine.part(stack.ENGINE)}
    record.save(stack.Stack(home, engine.options, parts))
    shutil.copy(engine_home / engine.part(stack.ENGINE).facts["token_file"], home)
