"""One operation of a caller of the server, as a process: `operation.py ID --parent PID`.

Opens home and ledger as `waybill run` does. It dies with the thread of the server that has started it.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from connect_core.engine.parent import die_with


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="operation.py", description="One operation of a caller of the server.")
    parser.add_argument("operation", metavar="ID", help="as the ledger has it")
    parser.add_argument("--parent", type=int, required=True, metavar="PID", help="the process with which this one ends")
    given = parser.parse_args(arguments)
    die_with(given.parent)
    from connect_core.service.opened import working
    from connect_core.service.operation_runs import execute

    with working() as opened:
        return 0 if execute(opened, given.operation, lambda: os._exit(0)) else 1


if __name__ == "__main__":
    sys.exit(main())
