"""The fork server of Spark's Python workers, named in `spark.python.daemon.module`.

Spark puts `pyspark.zip` in front of the workers' path. It holds sources only, which every new worker would compile
again (0.6 s of CPU each). Without it they take the same release from site-packages.

Spark ends workers that were idle for a minute, so most lanes of a slow schedule meet a new one. What every worker
loads is therefore loaded here, once, and shared by fork. Nothing of ours is, so that a new worker runs the code that
is on disk. A fork copies no threads: the only one that these imports start is the purger of Arrow's jemalloc, which
knows of forks.
"""

import importlib
import sys

PRELOADED = ("pandas", "pyarrow.compute", "pydantic", "pyspark.worker", "zstandard")


def main() -> None:
    sys.path[:] = [entry for entry in sys.path if not entry.endswith("pyspark.zip")]
    for name in PRELOADED:
        importlib.import_module(name)
    from pyspark import daemon

    daemon.manager()


if __name__ == "__main__":
    main()
