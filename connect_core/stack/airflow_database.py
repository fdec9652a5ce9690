"""Airflow's own database, seen from outside: made and migrated before a part starts, asked whether one is there.

Waybill's ledger is another database and knows nothing of this one. The version that it was migrated for stands in the
database's comment, so that a start which has nothing to migrate costs one query instead of four seconds.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from connect_core.errors import Unreachable
from connect_core.stack.airflow_settings import DATABASE, DATABASE_VARIABLE
from connect_core.stack.jars import Report
from connect_core.stack.locking import locked

if TYPE_CHECKING:
    from psycopg2.extensions import cursor as psycopg2_cursor

_MIGRATION_LIMIT_S = 300


def migrate(environment: Mapping[str, str], version: str, log: Path, report: Report) -> None:
    """Makes the database and brings it to what `version` of Airflow wants. Of several callers the first one does it."""
    url = environment[DATABASE_VARIABLE]
    with locked(log.with_name("airflow-migration.lock")):
        _create(url)
        if _migrated_for(url) == version:
            return
        report(f"making the tables of Airflow {version}")
        _run_migration(environment, log)
        with _cursor(url) as cursor:
            cursor.execute(f"COMMENT ON DATABASE {DATABASE} IS %s", (version,))


def end_jobs(url: str, job_type: str) -> None:
    """Closes what a killed process of that kind has left open. The caller knows that none of it lives.

    Airflow believes in it for another 15 s otherwise, and leaves its tasks and triggers with it for as long.
    """
    with _cursor(url) as cursor:
        cursor.execute(
            "UPDATE job SET state = 'failed', end_date = now() WHERE job_type = %s AND end_date IS NULL", (job_type,)
        )


def has_heartbeat(url: str, job_type: str, within_s: float) -> bool:
    """Whether a process of that kind has shown in that time that it works. Raises Unreachable."""
    with _asked(url) as cursor:
        cursor.execute(
            "SELECT 1 FROM job WHERE job_type = %s AND state = 'running' AND end_date IS NULL"
            " AND latest_heartbeat > now() - make_interval(secs => %s)",
            (job_type, within_s),
        )
        return cursor.fetchone() is not None


@dataclass(frozen=True)
class Waiting:
    """Tasks that the scheduler has given to its executor and that have not started: how many, for how many seconds the
    first of them; how many tasks run; and whether any has started lately."""

    queued: int
    longest_s: float
    running: int
    others_start: bool


def waiting(url: str, lately_s: float) -> Waiting:
    """Raises Unreachable."""
    with _asked(url) as cursor:
        cursor.execute(
            "SELECT count(*) FILTER (WHERE state = 'queued'), count(*) FILTER (WHERE state = 'running'),"
            " coalesce(extract(epoch FROM now() - min(queued_dttm) FILTER (WHERE state = 'queued')), 0)"
            " FROM task_instance WHERE state IN ('queued', 'running')"
        )
        queued, running, longest_s = cursor.fetchone() or (0, 0, 0)
        if longest_s < lately_s:
            return Waiting(queued, float(longest_s), running, others_start=True)
        cursor.execute(
            "SELECT 1 FROM task_instance WHERE start_date > now() - make_interval(secs => %s) LIMIT 1", (lately_s,)
        )
        return Waiting(queued, float(longest_s), running, cursor.fetchone() is not None)


def has_job(url: str, job_type: str) -> bool:
    """Whether a process of that kind has reported to Airflow, behind the last `end_jobs`."""
    import psycopg2

    try:
        with _cursor(url) as cursor:
            cursor.execute(
                "SELECT 1 FROM job WHERE job_type = %s AND state = 'running' AND end_date IS NULL", (job_type,)
            )
            return cursor.fetchone() is not None
    except psycopg2.OperationalError:
        return False


def _create(url: str) -> None:
    server = urlsplit(url)._replace(path="/postgres").geturl()
    with _cursor(server) as cursor:
        cursor.execute("SELECT 1 FROM pg_database WHERE datname = %s", (DATABASE,))
        if cursor.fetchone() is None:
            cursor.execute(f"CREATE DATABASE {DATABASE}")


def _migrated_for(url: str) -> str | None:
    with _cursor(url) as cursor:
        cursor.execute("SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = %s", (DATABASE,))
        row = cursor.fetchone()
    return row[0] if row else None


def _run_migration(environment: Mapping[str, str], log: Path) -> None:
    with log.open("w") as output:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "airflow", "db", "migrate"],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=_MIGRATION_LIMIT_S,
            check=False,
        )
    if done.returncode != 0:
        raise Unreachable(
            "The tables of Airflow could not be made", where=str(log), next_step="Fix what the log reports"
        )


@contextmanager
def _asked(url: str) -> Iterator[psycopg2_cursor]:
    import psycopg2

    try:
        with _cursor(url) as cursor:
            cursor.execute("SET statement_timeout = '3s'")
            yield cursor
    except psycopg2.Error as error:
        raise Unreachable("Airflow's database does not answer", next_step="See `waybill dev status`") from error


@contextmanager
def _cursor(url: str) -> Iterator[psycopg2_cursor]:
    """Each statement is a transaction of its own. The driver's name in SQLAlchemy's URL means nothing to libpq."""
    import psycopg2

    connection = psycopg2.connect(url.replace("+psycopg2", "", 1), connect_timeout=3)
    try:
        connection.autocommit = True
        with connection.cursor() as cursor:
            yield cursor
    finally:
        connection.close()
