"""The first job of a server: `python -m connect_core.engine.warm_up`, with the address in WAYBILL_ENGINE_REMOTE.

It is slower than the next hundred together: it loads classes, starts the fork server and a worker for each core. A
program of its own, so that whoever starts servers stays free of pyspark. Its exit codes are those of `waybill`.
"""

from __future__ import annotations

import os
import sys

from connect_core.engine.spark_connect import SparkConnectEngine
from connect_core.errors import WaybillError

REMOTE_VARIABLE = "WAYBILL_ENGINE_REMOTE"


def main() -> int:
    try:
        SparkConnectEngine(os.environ[REMOTE_VARIABLE]).warm_up(lanes=os.cpu_count() or 1)
    except WaybillError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
