"""The fork server of Spark's Python workers, named in `spark.python.daemon.module`.

Spark puts archives in front of the workers' path: `pyspark.zip`, Py4J's, and its own core jar. Two hold sources, which
every new worker would compile again (0.6 s of CPU each); and before each task Spark has all finders forget what they
know, so that their tables of contents would be read again (the jar's alone: 0.05 s). Without them workers take the
same releases from site-packages. The standard library's `copy` asks for a module `org`, which only Jython has, and
finds the jar's folder of that name: it is forgotten as well.

Spark ends workers that were idle for a minute, so most lanes of a slow schedule meet a new one. What every worker
loads is therefore loaded here, once, and shared by fork. Nothing of ours is, so that a new worker runs the code that
is on disk. Nobody looks for garbage in what is shared: that would copy its pages. A fork copies no threads: the only
one that these imports start is the purger of Arrow's jemalloc, which knows of forks.
"""

import gc
import importlib
import os
import sys

_ARCHIVES = (".zip", ".jar")
PRELOADED = (
    "importlib.metadata",
    "numpy.typing",
    "paho.mqtt.client",
    "pandas",
    "pyarrow.compute",
    "pydantic.json_schema",
    "pydantic.main",
    "pydantic.plugin._loader",
    "pydantic.types",
    "pyspark.worker",
    "xxhash",
    "zstandard",
)


def main() -> None:
    _leave_archives()
    for name in PRELOADED:
        importlib.import_module(name)
    from pyspark import daemon

    gc.freeze()
    daemon.manager()


def _leave_archives() -> None:
    sys.path[:] = [entry for entry in sys.path if not _archived(entry)]
    for entry in [entry for entry in sys.path_importer_cache if _archived(entry)]:
        del sys.path_importer_cache[entry]
    for name, module in list(sys.modules.items()):
        if any(_archived(place) for place in getattr(module, "__path__", ())):
            del sys.modules[name]


def _archived(place: str) -> bool:
    return any(part.endswith(_ARCHIVES) for part in place.split(os.sep))


if __name__ == "__main__":
    main()
