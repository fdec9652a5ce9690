"""What it costs Airflow's dag-processor to make the DAGs of many connectors.

`parse` fills a ledger of its own and has it parsed in fresh processes (`python -m tests.bench.parsing FOLDER`, this
module), each through the very function that the dag-processor calls in the process that it forks for a file: import,
one query, DAGs, serialised. Airflow's own modules are there before, as they are in a dag-processor.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

from connect_core import ledger
from connect_core.ledger import Ledger
from connect_core.stack.airflow_settings import DAG_FILE
from connect_core.stack.rocketmq import settings_of
from tests.bench.place import Place
from tests.bench.telling import Row, row, s

CONNECTORS = 300
_DATABASE = "parsing"
_SCHEDULES: tuple[dict[str, Any], ...] = (
    {"every": "30s"},
    {"every": "60s", "window": "55s"},
    {"cron": "*/5 * * * *"},
    {"on_change": True},
    {"manual": True},
)


def parse(place: Place, repeats: int, connectors: int = CONNECTORS) -> list[Row]:
    url = _filled(place, connectors)
    folder = place.folder / "parsing"
    folder.mkdir()
    (folder / "replication.py").write_text(DAG_FILE)
    taken = [_in_a_fresh_process(place, folder, url) for _ in range(repeats)]
    (queries,) = {one["queries"] for one in taken}
    (dags,) = {one["dags"] for one in taken}
    middle = {part: median(one[part] for one in taken) for part in ("wall_s", "cpu_s", "import_s")}
    remark = (
        f"{dags} DAGs, made and serialised; processor {s(middle['cpu_s'])}; importing {s(middle['import_s'])} of it;"
        f" {queries} {'query' if queries == 1 else 'queries'}"
    )
    return [row(f"{connectors} connectors parsed", s(middle["wall_s"]), remark)]


def _filled(place: Place, connectors: int) -> str:
    """A ledger beside that of the place, with connectors of every schedule."""
    import sqlalchemy as sa

    engine = sa.create_engine(place.running.database_url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sa.text(f"DROP DATABASE IF EXISTS {_DATABASE}"))
        connection.execute(sa.text(f"CREATE DATABASE {_DATABASE}"))
    engine.dispose()
    url = place.running.database(_DATABASE)
    ledger.upgrade(url)
    with Ledger.open(url) as opened:
        opened.apply_all({f"shop-{number:03d}": _document(number) for number in range(connectors)}, who="bench")
    return url


def _document(number: int) -> dict[str, Any]:
    name = f"shop-{number:03d}"
    return {
        "version": 1,
        "name": name,
        "description": "what a shop has sold",
        "source": {"file": {"path": f"/var/log/{name}/*.log"}},
        "sink": {"rocketmq": {"name_servers": "127.0.0.1:9876", "topic": name}},
        "schedule": _SCHEDULES[number % len(_SCHEDULES)],
    }


def _in_a_fresh_process(place: Place, folder: Path, url: str) -> dict[str, Any]:
    environment = {
        **os.environ,
        **settings_of("airflow.env"),
        **settings_of("airflow-local.env"),
        "AIRFLOW_HOME": str(folder),
        "AIRFLOW__CORE__DAGS_FOLDER": str(folder),
        "WAYBILL_HOME": str(place.home),
        "WAYBILL_DATABASE_URL": url,
    }
    command = [sys.executable, "-m", "tests.bench.parsing", str(folder)]
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def main(folder: Path) -> None:
    """Prints what one parse took, as JSON on its last line."""
    import sqlalchemy as sa
    import structlog
    from airflow.dag_processing import manager, processor

    queries: list[str] = []

    def remember(connection: sa.Connection, _cursor: Any, statement: str, *_rest: Any) -> None:
        if connection.engine.url.database == _DATABASE:
            queries.append(statement)

    sa.event.listen(sa.Engine, "before_cursor_execute", remember)
    wished = processor.DagFileParseRequest(
        file=str(folder / "replication.py"), bundle_path=folder, bundle_name="dags-folder"
    )
    log = structlog.get_logger(manager.__name__)
    wall, cpu = time.perf_counter(), time.process_time()
    import connect_core.airflow.dags  # noqa: F401

    imported = time.perf_counter()
    result = processor._parse_file(wished, log)
    told = {"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu, "import_s": imported - wall}
    if result is None or result.import_errors:
        raise SystemExit(f"the file cannot be parsed: {result and result.import_errors}")
    print(json.dumps({**told, "queries": len(queries), "dags": len(result.serialized_dags)}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
