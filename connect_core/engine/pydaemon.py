"""The fork server of Spark's Python workers, named in `spark.python.daemon.module`.

Spark puts archives in front of the workers' path: `pyspark.zip`, Py4J's, and its own core jar. Two hold sources, which
every new worker would compile again (0.6 s of CPU each); and before each task Spark has all finders forget what they
know, so that their tables of contents would be read again (the jar's alone: 0.05 s). Without them workers take the
same releases from site-packages.

Spark ends workers that were idle for a minute, so most lanes of a slow schedule meet a new one. What every worker
loads is therefore loaded here, once, and shared by fork. Nothing of ours is, so that a new worker runs the code that
is on disk. A fork copies no threads: the only one that these imports start is the purger of Arrow's jemalloc, which
knows of forks.
"""

import importlib
import sys

_ARCHIVES = (".zip", ".jar")
PRELOADED = ("pandas", "pyarrow.compute", "pydantic", "pyspark.worker", "zstandard")


def main() -> None:
    sys.path[:] = [entry for entry in sys.path if not entry.endswith(_ARCHIVES)]
    for entry in [entry for entry in sys.path_importer_cache if any(kind in entry for kind in _ARCHIVES)]:
        del sys.path_importer_cache[entry]
    for name in PRELOADED:
        importlib.import_module(name)
    from pyspark import daemon

    daemon.manager()


if __name__ == "__main__":
    main()
