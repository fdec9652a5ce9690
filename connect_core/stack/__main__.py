"""`python -m connect_core.stack stop|clean|PART HOME`, for make and for containers.

`stop` ends the stack of HOME; `clean` also removes what its PostgreSQL keeps outside of HOME. Neither minds a HOME
that is not there, and both work without the installed packages. A PART (`engine`, `rest`, or one of Airflow's) becomes
that server, in the foreground, on its well-known port: what a container runs. There `AIRFLOW__…` variables are obeyed,
and the engine has one address for good: no record of a stack says where it is.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from connect_core.errors import WaybillError
from connect_core.stack import AIRFLOW_PARTS, ENGINE, REST, Options, airflow_settings, down, postgresql
from connect_core.stack.lifecycle import KINDS
from connect_core.stack.parts import Site


def main(arguments: list[str]) -> int:
    if len(arguments) != 2 or arguments[0] not in _VERBS:
        print(__doc__.splitlines()[0], file=sys.stderr)
        return 2
    try:
        _VERBS[arguments[0]](Path(arguments[1]).absolute())
    except WaybillError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


def _stop(home: Path) -> None:
    if home.is_dir():
        down(home, report=print)


def _clean(home: Path) -> None:
    _stop(home)
    postgresql.forget(home)


def _become(name: str, home: Path) -> None:
    kind = KINDS[name]
    (home / "logs").mkdir(parents=True, exist_ok=True)
    given = {name: value for name, value in os.environ.items() if name.startswith("AIRFLOW__")}
    if name in AIRFLOW_PARTS:
        given[airflow_settings.ENGINE_VARIABLE] = airflow_settings.engine_connection(home, KINDS[ENGINE].well_known)
    neighbours = {other.name: other.well_known for other in KINDS.values()}
    site = Site(home, kind.well_known, neighbours, Options(airflow=given))
    kind.prepare(site, print)
    launch = kind.launch(site)
    os.execve(launch.command[0], launch.command, dict(launch.environment))


_SERVERS = {name: partial(_become, name) for name in (ENGINE, *AIRFLOW_PARTS, REST)}
_VERBS: dict[str, Callable[[Path], None]] = {"stop": _stop, "clean": _clean, **_SERVERS}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
