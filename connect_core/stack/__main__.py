"""`python -m connect_core.stack stop|clean|engine HOME`, for make and for containers.

`stop` ends the stack of HOME; `clean` also removes what its PostgreSQL keeps outside of HOME. Neither minds a HOME
that is not there, and both work without the installed packages. `engine` becomes the engine, in the foreground, on its
well-known port: what a container runs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from connect_core.errors import WaybillError
from connect_core.stack import Options, down, postgresql, spark_connect
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


def _become_engine(home: Path) -> None:
    kind = spark_connect.SparkConnect()
    home.mkdir(parents=True, exist_ok=True)
    site = Site(home, kind.well_known, {}, Options())
    kind.prepare(site, print)
    launch = kind.launch(site)
    os.execve(launch.command[0], launch.command, dict(launch.environment))


_VERBS: dict[str, Callable[[Path], None]] = {"stop": _stop, "clean": _clean, "engine": _become_engine}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
