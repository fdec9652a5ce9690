"""A driver with a classic Spark of its own, as a program: says as JSON what it saw of its jobs."""

from __future__ import annotations

import contextlib
import io
import json
import sys
import time
from pathlib import Path

from connect_core.engine import envelope, spark_jobs, spark_task
from connect_core.engine.spark_classic import SparkClassicEngine
from connect_core.errors import EngineFailed
from tests.unit.engine.lanes import lane, meeting, scan_task

SECRET = "only-in-a-column"
CANCEL_LIMIT_S = 20.0
ROWS = 3


def main(folder: Path) -> dict[str, object]:
    engine = SparkClassicEngine()
    engine.open(lanes=2)
    context = engine.session().sparkContext
    seen: dict[str, object] = {"encrypted": context._encryption_enabled}

    outcomes = engine.execute(meeting(folder, 2))
    seen["tasks"] = sorted(outcome.receipt.where["task"] for outcome in outcomes if outcome.receipt)
    seen["attempts"] = context.getConf().get("spark.task.maxFailures")

    requests = [envelope.request(lane(folder, secret=SECRET))]
    plan = io.StringIO()
    with contextlib.redirect_stdout(plan):
        spark_jobs.frame(engine.session(), spark_task.lanes, requests).explain(extended=True)
    seen["plan"] = plan.getvalue()
    seen["partitions"] = spark_jobs.frame(engine.session(), spark_task.lanes, requests * ROWS).rdd.getNumPartitions()

    note = folder / "note"
    slow = envelope.request(scan_task(seconds=60, note=note))
    try:
        engine.answers(spark_task.searches, [slow], limit_s=10.0)
    except EngineFailed as error:
        seen["given_up"] = str(error)
    seen["worker"] = int(note.read_text())
    until = time.monotonic() + CANCEL_LIMIT_S
    while (jobs := list(context.statusTracker().getActiveJobsIds())) and time.monotonic() < until:
        time.sleep(0.05)
    seen["jobs"] = jobs
    return seen


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]))))
