"""What fault tests may ask for: the Java reader, a proxy, an engine to kill, homes on either database and engine."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from connect_core import ledger, stack
from connect_core.stack import postgresql
from tests.faults.kit.airflow import OPTIONS, GrowingFiles, site_of
from tests.faults.kit.cluster import Cluster
from tests.faults.kit.engines import Engine
from tests.faults.kit.journeys import WAYS, Across, Journey, OldCluster
from tests.faults.kit.proxy import RocketMQProxy
from tests.faults.kit.topics import JavaReader
from tests.servers import RocketMQ
from tests.site import Site, new_site

MakeSite = Callable[..., Site]
MakeJourney = Callable[..., Journey]
MakeAcross = Callable[..., Across]


@pytest.fixture(scope="session")
def java_reader(rocketmq: RocketMQ, worker_folder: Path) -> Iterator[JavaReader]:
    """Reads the topics of this process's own broker."""
    folder = worker_folder / "java-reader"
    reader = JavaReader(rocketmq, folder)
    yield reader
    reader.close()
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def old_cluster(rocketmq_533: RocketMQ, worker_folder: Path) -> Iterator[OldCluster]:
    """Of the oldest version that is promised to work, beside this process's own broker."""
    folder = worker_folder / "old-reader"
    reader = JavaReader(rocketmq_533, folder)
    yield OldCluster(rocketmq_533, reader)
    reader.close()
    shutil.rmtree(folder)


@pytest.fixture
def journey_of(request: pytest.FixtureRequest, java_reader: JavaReader) -> MakeJourney:
    """Makes the journey of a way on a site, `journey_of("across", site, records=100)`, with the clusters it needs."""

    def make(way: str, site: Site, **options: Any) -> Journey:
        if way == "across":
            options["old"] = request.getfixturevalue("old_cluster")
        made: Journey = WAYS[way](site, java_reader, **options)
        return made

    return make


@pytest.fixture(scope="session")
def _own_engine(worker_folder: Path) -> Iterator[Engine]:
    engine = Engine(worker_folder / "engine" / ".waybill", slots=4)
    yield engine
    stack.down(engine.home)


@pytest.fixture
def own_engine(_own_engine: Engine) -> Engine:
    """This process's own, running whatever the test before has done to it."""
    _own_engine.start()
    return _own_engine


@pytest.fixture(scope="module")
def _cluster(worker_folder: Path) -> Iterator[Cluster]:
    cluster = Cluster(worker_folder / "cluster")
    cluster.folder.mkdir()
    yield cluster
    cluster.stop()


@pytest.fixture
def cluster(_cluster: Cluster) -> Cluster:
    """A standalone Spark cluster, running whatever the test before has done to it."""
    _cluster.start()
    return _cluster


@pytest.fixture(scope="module")
def own_airflow(worker_folder: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """The home of a whole stack with Airflow under its supervisor, of one module alone: its parts may be killed."""
    home = worker_folder / request.module.__name__.rpartition(".")[2] / ".waybill"
    running = stack.up(home, options=OPTIONS)
    ledger.upgrade(running.database_url)
    yield home
    stack.down(home)
    postgresql.forget(home)


@pytest.fixture
def journey(own_airflow: Path) -> Iterator[GrowingFiles]:
    """A connector on that stack, not yet applied; deleted behind the test."""
    made = GrowingFiles(site_of(own_airflow), f"lines-{uuid.uuid4().hex[:8]}")
    yield made
    made.dry_up()
    made.site.waybill("connectors", "delete", made.name, "--yes")


@pytest.fixture
def proxy(rocketmq: RocketMQ) -> Iterator[RocketMQProxy]:
    """A line in front of this process's own broker; `proxy.address` is the name server to give to a connector."""
    running = stack.load(rocketmq.home)
    assert running is not None
    port = running.part(stack.BROKER).ports["remoting"]
    proxy = RocketMQProxy(rocketmq.name_servers[0], f"127.0.0.1:{port}")
    yield proxy
    proxy.close()


@pytest.fixture
def site_on(request: pytest.FixtureRequest, tmp_path: Path, rocketmq: RocketMQ) -> MakeSite:
    """Makes the test's home: `site_on("PostgreSQL")`, `site_on("SQLite", engine)`."""

    def make(database: str, engine: Engine | None = None) -> Site:
        if engine is None:
            request.getfixturevalue("spark_remote")
        if database == "SQLite":
            url = f"sqlite:///{tmp_path}/.waybill/ledger.db"
        else:
            url = request.getfixturevalue("new_database")(request.getfixturevalue("postgres_url"))
        return new_site(tmp_path, url, rocketmq, engine.home if engine else None)

    return make


@pytest.fixture
def inline_site(bare_site: Site, rocketmq: RocketMQ) -> Site:
    """With this process's own RocketMQ and no engine, which takes longer to start than most tests need: for documents
    that name their servers, and runs with `--engine inline`."""
    bare_site.name_servers = rocketmq.name_servers
    return bare_site


@pytest.fixture
def across(site_on: MakeSite, journey_of: MakeJourney) -> MakeAcross:
    """Makes the journey between two clusters: `across("SQLite", records=100)`, `across("PostgreSQL", engine)`."""

    def make(database: str, engine: Engine | None = None, **options: Any) -> Across:
        made = journey_of("across", site_on(database, engine), **options)
        assert isinstance(made, Across)
        return made

    return make
