"""`python -m connect_core.stack stop|clean HOME`, for make: works without the installed command and its packages.

`stop` ends the stack of HOME; `clean` also removes what its PostgreSQL keeps outside of HOME. Neither minds a HOME
that is not there.
"""

from __future__ import annotations

import sys
from pathlib import Path

from connect_core.errors import WaybillError
from connect_core.stack import down, postgresql


def main(arguments: list[str]) -> int:
    match arguments:
        case ["stop" | "clean" as verb, place]:
            home = Path(place).absolute()
        case _:
            print(__doc__.splitlines()[0], file=sys.stderr)
            return 2
    if not home.is_dir():
        return 0
    try:
        down(home, report=print)
    except WaybillError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    if verb == "clean":
        postgresql.forget(home)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
