"""The fork server of Spark's Python workers, named in `spark.python.daemon.module`.

Spark puts `pyspark.zip` in front of the workers' path. It holds sources only, which every new worker would compile
again (0.6 s of CPU each). Without it they take the same release from site-packages. It imports nothing of ours
beyond this package, so that a new worker always runs the code that is on disk.
"""

import sys

sys.path[:] = [entry for entry in sys.path if not entry.endswith("pyspark.zip")]

if __name__ == "__main__":
    from pyspark import daemon

    daemon.manager()
