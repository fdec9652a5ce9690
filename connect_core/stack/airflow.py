"""Airflow as four parts of the stack, each a process of its own on the embedded PostgreSQL.

Never `airflow standalone`: it starts nothing again that died, and its end leaves its children running. The parts wait
for PostgreSQL, the first of them migrates, and all start side by side; the api-server's port is known before any of
them runs. Their log servers are left out: they listen on every interface, and on one machine the api-server reads the
same files.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping, Set
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import ClassVar

from connect_core.errors import Unreachable
from connect_core.stack import airflow_database, airflow_settings, jars, ports, postgresql, record, starting
from connect_core.stack.http_answers import answers
from connect_core.stack.parts import (
    API_SERVER,
    DAG_PROCESSOR,
    NOT_ANSWERING,
    POSTGRESQL,
    RUNNING,
    SCHEDULER,
    STARTS_NO_TASKS,
    TRIGGERER,
    Site,
    running_if,
)
from connect_core.stack.processes import Launch

_PACKAGE = "apache-airflow-core"
_SILENT_S = 30.0
"""Airflow's parts send a heartbeat every five seconds; on a crowded machine a few are late."""


def is_installed() -> bool:
    """Whether the extra `airflow` of this package is there."""
    try:
        installed_version(_PACKAGE)
    except PackageNotFoundError:
        return False
    return True


@dataclass(frozen=True)
class Component:
    """Scheduler, dag-processor or triggerer. `job_type` is what Airflow calls it in its table of jobs."""

    name: str
    job_type: str
    stop_grace_s: float
    arguments: tuple[str, ...] = ()
    after: ClassVar[tuple[str, ...]] = (POSTGRESQL,)
    told: ClassVar[tuple[str, ...]] = (API_SERVER,)
    well_known: ClassVar[Mapping[str, int]] = {}
    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM

    def choose_ports(self, wanted: Mapping[str, int], taken: Set[int]) -> Mapping[str, int]:
        return {}

    def prepare(self, site: Site, report: jars.Report) -> None:
        _prepare(site, report)
        # Whatever the last one has left is dead: its session was ended before this.
        airflow_database.end_jobs(_database(site), self.job_type)

    def launch(self, site: Site) -> Launch:
        return _launch(site, self.name, *self.arguments)

    def is_ready(self, site: Site, output: str) -> bool:
        return airflow_database.has_job(_database(site), self.job_type)

    def condition(self, site: Site) -> str:
        """By its heartbeats in Airflow's database; a scheduler also by whether what it has queued is started."""
        try:
            if not airflow_database.has_heartbeat(_database(site), self.job_type, _SILENT_S):
                return NOT_ANSWERING
            stuck = self.name == SCHEDULER and look_at_tasks(site.home).is_stuck
        except Unreachable:
            return NOT_ANSWERING
        return STARTS_NO_TASKS if stuck else RUNNING

    def welcome(self, site: Site) -> None:
        """Nothing to do."""

    def version(self, site: Site) -> str:
        return installed_version(_PACKAGE)

    def facts(self, site: Site) -> Mapping[str, str]:
        return {}


@dataclass(frozen=True)
class ApiServer:
    name: ClassVar[str] = API_SERVER
    after: ClassVar[tuple[str, ...]] = (POSTGRESQL,)
    told: ClassVar[tuple[str, ...]] = ()
    well_known: ClassVar[Mapping[str, int]] = {"http": 8080}
    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM
    # It serves nobody any more long before its interpreter has ended.
    stop_grace_s: ClassVar[float] = 5

    def choose_ports(self, wanted: Mapping[str, int], taken: Set[int]) -> Mapping[str, int]:
        return {"http": ports.choose(wanted.get("http", 0), taken)}

    def prepare(self, site: Site, report: jars.Report) -> None:
        _prepare(site, report)

    def launch(self, site: Site) -> Launch:
        return _launch(site, self.name)

    def is_ready(self, site: Site, output: str) -> bool:
        return self.condition(site) == RUNNING

    def condition(self, site: Site) -> str:
        """Health needs the database, the version does not; neither needs a login."""
        return running_if(answers(site.ports["http"], "/api/v2/monitor/health"))

    def welcome(self, site: Site) -> None:
        """Nothing to do."""

    def version(self, site: Site) -> str:
        return installed_version(_PACKAGE)

    def facts(self, site: Site) -> Mapping[str, str]:
        return {
            "user": airflow_settings.USER,
            "password_file": str(airflow_settings.password_file(site.home).relative_to(site.home)),
        }


def look_at_tasks(home: Path) -> starting.Look:
    """Whether what the recorded scheduler has queued is started. Raises Unreachable when that cannot be seen."""
    recorded = record.load(home)
    if recorded is None:
        raise Unreachable("No part of the stack is running", where=str(home), next_step="Run `waybill dev up`")
    pid = recorded.part(SCHEDULER).process.pid
    return starting.look(postgresql.url(home, airflow_settings.DATABASE), pid)


KINDS = (
    ApiServer(),
    # Waits for running tasks, which may end at a range boundary in that time; they are killed with its session then.
    Component(SCHEDULER, "SchedulerJob", 10, ("--skip-serve-logs",)),
    Component(DAG_PROCESSOR, "DagProcessorJob", 5),
    # Sometimes waits 10 s for its own child. Triggers are in the database; nothing is lost with either.
    Component(TRIGGERER, "TriggererJob", 3, ("--skip-serve-logs",)),
)


def _prepare(site: Site, report: jars.Report) -> None:
    if not is_installed():
        raise Unreachable("Airflow is not installed", next_step=f"{sys.executable} -m pip install 'waybill[airflow]'")
    _make_ledger(site)
    airflow_settings.write_files(site.home)
    log = site.log("airflow-migration")
    airflow_database.migrate(airflow_settings.environment(site), installed_version(_PACKAGE), log, report)


def _make_ledger(site: Site) -> None:
    """The DAGs are made from it, so it is there before anybody looks for them."""
    from connect_core.ledger import upgrade

    upgrade(os.environ.get("WAYBILL_DATABASE_URL") or postgresql.url(site.home, postgresql.DATABASE))


def _launch(site: Site, part: str, *arguments: str) -> Launch:
    # It stands in its own folder, and imports nothing from there (-P).
    stands = ("/usr/bin/env", f"--chdir={airflow_settings.folder(site.home)}")
    command = (*stands, sys.executable, "-P", "-m", "airflow", part, *arguments)
    return Launch(command, airflow_settings.environment(site), site.log(part))


def _database(site: Site) -> str:
    return postgresql.url(site.home, airflow_settings.DATABASE)
