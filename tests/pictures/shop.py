"""What the pictures show: a shop whose order and payment logs Airflow moves, in a whole stack of its own."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from connect_core import ledger, stack
from connect_core.errors import Unreachable
from connect_core.orchestration.rest import Airflow, DagRun, NotThere
from connect_core.stack import postgresql
from tests.site import Site

INWARD, OUTWARD, PAYMENTS = "orders-in", "orders-archive", "payments-in"
ORDERS = 120_000
_SHOPS = ("berlin", "lyon", "turin")
_LIMIT_S = 400.0
_LOOK_EVERY_S = 0.5

DOCUMENTS: dict[str, dict[str, Any]] = {
    INWARD: {
        "description": "Orders of the three shops, within a minute",
        "source": {"file": {"path": "*/orders.log"}},
        "sink": {"rocketmq": {"connection": "main", "topic": "orders", "queues": 4}},
        "schedule": {"every": "20s"},
        "limits": {"records_per_second": 16_000},  # the first quantum moves a part of what is there, not all of it
    },
    OUTWARD: {
        "description": "Every order in one file, for the auditors",
        "source": {"rocketmq": {"connection": "main", "topics": "orders"}},
        "sink": {"file": {"path": "archive/all.log"}},
        "schedule": {"cron": "*/5 * * * *"},
        "limits": {"records_per_second": 2_500},  # a backfill of everything takes the better part of a minute
    },
    PAYMENTS: {
        "description": "Payments, as soon as there are new ones",
        "source": {"file": {"path": "*/payments.log"}},
        "sink": {"rocketmq": {"connection": "main", "topic": "payments", "queues": 4}},
        "tasks": 2,
        "schedule": {"on_change": True},
    },
}


@dataclass(frozen=True)
class Shop:
    """`airflow` is logged in; `address` and `login` are what a browser needs for the same."""

    site: Site
    airflow: Airflow
    address: str
    login: tuple[str, str]

    def write(self, log: str, lines: int) -> None:
        """So many in all, each shop its share."""
        for shop in _SHOPS:
            path = self.site.folder / shop / log
            path.parent.mkdir(exist_ok=True)
            orders = (
                f"{shop} {number:06d} {number * 37 % 9_000 / 100:.2f} EUR\n" for number in range(lines // len(_SHOPS))
            )
            path.write_text("".join(orders))

    def apply(self, *connectors: str) -> None:
        self.site.apply_all({name: DOCUMENTS[name] for name in connectors})

    def succeeded(self, dag_id: str, run_id: str = "") -> DagRun:
        """The newest run that has ended, or the one that is named."""

        def ended() -> DagRun | None:
            runs = [self.airflow.run(dag_id, run_id)] if run_id else self.airflow.runs(dag_id)
            return next((run for run in runs if run.state in ("success", "failed")), None)

        run = eventually(ended, f"the end of a run of {dag_id}")
        assert run.state == "success", f"{dag_id}, run {run.run_id}: {run.state}"
        return run


@contextmanager
def opened() -> Iterator[Shop]:
    """A whole stack, stopped at the end, in a folder whose name is short enough for a line of a log."""
    folder = Path(tempfile.mkdtemp(prefix="shop-"))
    folder.chmod(0o711)  # PostgreSQL runs as another account when this one is root
    home = folder / ".waybill"
    (folder / "archive").mkdir()
    try:
        running = stack.up(home, options=stack.Options(well_known_ports=False))
        ledger.upgrade(running.database_url)
        site = Site(folder, "orders", [running.name_servers], running.database_url)
        login = (running.airflow_user, running.airflow_password)
        with ExitStack() as session:
            airflow = eventually(lambda: session.enter_context(Airflow(running.airflow_url, *login)), "the login")
            yield Shop(site, airflow, running.airflow_url, login)
    finally:
        stack.down(home)
        postgresql.forget(home)
        shutil.rmtree(folder, ignore_errors=True)


def eventually(found: Callable[[], Any], for_what: str) -> Any:
    """The first answer that is true; Airflow may not know yet what it is asked for, or be busy."""
    until = time.monotonic() + _LIMIT_S
    while True:
        try:
            if seen := found():
                return seen
        except (NotThere, Unreachable):
            pass
        assert time.monotonic() < until, f"{for_what}: not within {_LIMIT_S:.0f} s"
        time.sleep(_LOOK_EVERY_S)
