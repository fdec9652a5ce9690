"""The Spark application of a run: `spark-submit … jobs/replicate.py NAME`. The same as the package's own."""

import sys

from connect_core.jobs.replicate import main

sys.exit(main())
