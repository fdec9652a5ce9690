"""What docs/spark-data-source.md shows is run as it stands there: with the resident server, and with classic Spark."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import pyspark
import pytest

from connect_core.engine import submit
from connect_core.engine.spark_session import SESSION_ID, USER_ID
from connect_core.rocketmq import Client, ClientOptions, Queue
from connect_core.rocketmq.wire.properties import value_of
from connect_core.stack import jars, java
from tests.faults.rows import FaultRow
from tests.servers import RocketMQ
from tests.system.spark import classic_job

pytestmark = pytest.mark.server

ROOT = Path(__file__).parents[3]
ENCRYPTION = "spark.io.encryption.enabled"
"""Left out, for with it Spark cannot read the logs of its workers again."""
PAGE = (ROOT / "docs" / "spark-data-source.md").read_text()


def program(folder: Path, rocketmq: RocketMQ) -> Path:
    """Every block of the page, one behind the other, for this broker and a topic that nobody else has."""
    blocks = "\n".join(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL))
    topic = f"page-{uuid.uuid4().hex[:12]}"
    ours = blocks.replace("127.0.0.1:9876", rocketmq.name_servers[0])
    ours = re.sub(r'(?<=")orders(?=["/,])', topic, ours)
    assert ours.count(topic) >= 6
    path = folder / "page.py"
    path.write_text(ours)
    return path


def check_printed(output: str) -> None:
    (expected,) = re.findall(r"It prints\n\n```text\n(.*?)```", PAGE, re.DOTALL)
    assert expected in output


def test_the_page_with_the_resident_server(spark_remote: str, rocketmq: RocketMQ, tmp_path: Path) -> None:
    remote = f"{spark_remote};user_id={USER_ID};session_id={SESSION_ID}"
    environment = {**os.environ, "SPARK_REMOTE": remote, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(program(tmp_path, rocketmq))]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    check_printed(done.stdout)


@pytest.mark.fault(costly=True)
@pytest.mark.timeout(600)
def test_classic_spark_and_a_task_that_it_runs_twice(rocketmq: RocketMQ, tmp_path: Path, row: FaultRow) -> None:
    """One application for all of it: a JVM is slow to start."""
    row.describe("a task of the Spark data source fails in its middle and is run again", where="DataFrame → RocketMQ")
    topic = f"twice-{uuid.uuid4().hex[:12]}"
    seen = run_classic(program(tmp_path, rocketmq), rocketmq.name_servers[0], rocketmq.broker_name, topic)
    counted = Counter(seen["values"])
    assert set(counted) == set(range(classic_job.ROWS))
    row.lost = 0
    row.repeated = sum(count - 1 for count in counted.values())
    row.condition = "at least once, as documented; repeats have the same message id"
    assert row.repeated > 0
    queue, end = seen["queue"], classic_job.ROWS + row.repeated
    assert seen["gaps"] == [{"begin": end, "end": 1 << 40, "cause": f"the queue ends at {end}"}]
    assert f"INFO written: {classic_job.ROWS:,} messages ({queue}: {classic_job.ROWS:,})" in seen["logs"]
    told = f"WARNING messages cannot be read: {queue} from {end} to {1 << 40} (the queue ends at {end})"
    assert told in seen["logs"]
    check_ids(rocketmq, topic, row.repeated)


def run_classic(page: Path, *arguments: str) -> dict[str, Any]:
    """What `classic_job` tells, in a Spark that runs a task twice."""
    master = "local[2,2]"
    spark_submit = str(Path(pyspark.__file__).parent / "bin" / "spark-submit")
    confs = {name: value for name, value in submit.confs(master).items() if name != ENCRYPTION}
    settings = [part for name, value in confs.items() for part in ("--conf", f"{name}={value}")]
    environment = {
        **os.environ,
        **submit.environment(java.find(jars.cache_folder()), page.parent, master),
        "PYTHONPATH": str(ROOT),
    }
    command = [spark_submit, "--master", master, *settings, classic_job.__file__, str(page), *arguments]
    done = subprocess.run(command, env=environment, cwd=page.parent, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    check_printed(done.stdout)
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def check_ids(rocketmq: RocketMQ, topic: str, repeated: int) -> None:
    """Equal rows have equal message ids, and no others have."""
    with Client(ClientOptions(tuple(rocketmq.name_servers))) as client:
        queue = Queue(topic, rocketmq.broker_name, 0)
        deadline = time.monotonic() + 20
        parts = client.read(queue, 0, client.offsets.end(queue), deadline=deadline)
        messages = [message for part in parts for message in part.messages]
    pairs = {(message.body, value_of(message.properties, "UNIQ_KEY")) for message in messages}
    assert len(messages) == classic_job.ROWS + repeated
    assert len(pairs) == len({body for body, _ in pairs}) == len({one for _, one in pairs}) == classic_job.ROWS
