"""What a person reads of a worker that crashed: one line, which names the file that has the rest. Spark's stack traces
never reach the terminal."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.site import Site

pytestmark = pytest.mark.server
COSTLY = pytest.mark.fault(costly=True)

STACK = re.compile(r"\bat (org|java|scala|io)\.|Traceback|\.scala:\d+|Py4J|File \"|JVM stacktrace|Fatal Python")


def crashed(site: Site, engine: str) -> list[str]:
    """What a run prints whose worker is killed between two batches."""
    (site.folder / "in.log").write_text("".join(f"{number}\n" for number in range(9_000)))
    site.apply(
        "lines",
        {
            "source": {"file": {"path": "in.log"}},
            "sink": {"rocketmq": {"name_servers": site.name_servers[0], "topic": site.topic, "queues": 1}},
        },
    )
    site.fault("batch-written")
    process = site.start("run", "lines", "--engine", engine)
    out, err = process.communicate(timeout=240)
    assert process.returncode == 1, out + err
    return [line for line in f"{out}\n{err}".splitlines() if line.strip()]


@pytest.mark.parametrize("engine", ["spark", pytest.param("submit", marks=COSTLY), "inline"])
def test_a_killed_worker_is_one_line_that_names_a_file(site: Site, engine: str) -> None:
    lines = crashed(site, engine)
    assert not [line for line in lines if STACK.search(line)], "\n".join(lines)
    (told,) = [line for line in lines if line.startswith("Error")]
    assert "killed" in told
    named = re.findall(r"(/\S+\.log)", told)
    assert named, told
    assert Path(named[0]).read_text().strip(), f"{named[0]} says nothing"
