"""`unknown: evolve` with the command as typed, from logs to a file: drivers and workers are killed at each step, and
what is in the file is as if nobody had been."""

from __future__ import annotations

import json
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.site import Site

LINES = 40
COSTLY = pytest.mark.fault(costly=True)
STEPS = [
    *("batch-written", "before-evolved", "evolved"),
    *(
        pytest.param(step, marks=COSTLY)
        for step in ("leased", "planned", "lane-started", "before-receipt", "executed", "settled", "confirmed")
    ),
]


def line(number: int) -> str:
    """Every tenth needs something new."""
    more: dict[str, Any] = {10: {"late": True}, 20: {"id": 1 << 40}, 30: {"order": {"n": 1.5}}}.get(number, {})
    return json.dumps({"id": number, **more})


def document(logs: str, **more: Any) -> dict[str, Any]:
    return {
        "source": {"file": {"path": logs}},
        "sink": {"file": {"path": "out.txt"}},
        "engine": "inline",
        "parse": {"format": "json", "fields": {"id": "int32"}, "unknown": "evolve"},
        "encode": {"format": "json"},
        **more,
    }


@pytest.fixture
def site(bare_site: Site) -> Site:
    (bare_site.folder / "in.log").write_text("".join(f"{line(n)}\n" for n in range(LINES)))
    bare_site.apply("a", document("in.log"))
    return bare_site


def out(site: Site) -> list[dict[str, Any]]:
    return [json.loads(one) for one in Path(site.folder / "out.txt").read_text().splitlines()]


def revisions(site: Site) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = site.json("connectors", "show", "a", "--revisions")["revisions"]
    return found


def run_until_done(site: Site) -> None:
    """What a scheduler does: a run that was killed is started again."""
    for _ in range(10):
        with site.start("run", "a") as process:
            out, err = process.communicate(timeout=120)
        if process.returncode == 0:
            return
        assert process.returncode == -signal.SIGKILL or "killed by signal 9" in err, f"{out}{err}"
    raise AssertionError("ten runs were not enough")


def check(site: Site) -> None:
    expected = [json.loads(line(number)) for number in range(LINES)]
    assert [{name: of for name, of in row.items() if of is not None} for row in out(site)] == expected
    fields = site.json("connectors", "show", "a")["document"]["parse"]["fields"]
    assert fields == {"id": "int64", "late": "bool", "order": {"n": "float64"}}
    receipts = site.json("receipts", "a", "--last", "100")["receipts"]
    assert sum(one["read"] for one in receipts) == LINES
    assert sum(one["rejected"] for one in receipts) == 0


def test_one_run_goes_on_with_each_field_that_comes(site: Site) -> None:
    told = site.json("run", "a")
    assert (told["read"], told["delivered"], told["rejected"]) == (LINES, LINES, 0)
    check(site)
    first, second = revisions(site)
    assert second["who"].startswith("run ")
    assert "a record needed id: int64, late: bool, order.n: float64: partition " in second["why"]
    assert second["why"].endswith("offset 100")
    assert first["who"] != second["who"]


@pytest.mark.parametrize("step", STEPS)
def test_whoever_is_killed_at_a_step_loses_repeats_and_guesses_nothing(site: Site, step: str) -> None:
    fault = site.fault(step)
    run_until_done(site)
    assert not fault.exists(), "the step was reached"
    check(site)
    assert len(revisions(site)) == 2


def test_tasks_that_evolve_at_the_same_moment_all_have_their_fields(bare_site: Site) -> None:
    """Four, side by side, and each of them needs a field of its own."""
    site, logs = bare_site, bare_site.folder / "logs"
    logs.mkdir()
    for number in range(4):
        (logs / f"{number}.log").write_text(f'{{"id":{number}}}\n{{"id":{number},"of_{number}":{number}}}\n')
    (site.folder / "out").mkdir()
    site.apply("a", document("logs/*.log", tasks=4, sink={"file": {"path": "out/{task}.txt"}}))
    site.waybill("run", "a")
    rows = [
        json.loads(one) for path in sorted((site.folder / "out").glob("*")) for one in path.read_text().splitlines()
    ]
    found = sorted(row["id"] for row in rows)
    assert found == [0, 0, 1, 1, 2, 2, 3, 3]
    assert sorted(row[f"of_{row['id']}"] for row in rows if row.get(f"of_{row['id']}") is not None) == [0, 1, 2, 3]
    fields = site.json("connectors", "show", "a")["document"]["parse"]["fields"]
    assert sorted(fields) == ["id", "of_0", "of_1", "of_2", "of_3"]


def test_a_person_who_applies_at_the_same_moment_is_joined_with(bare_site: Site) -> None:
    """The run stands still before it stores its revision."""
    site = bare_site
    (site.folder / "in.log").write_text('{"id":1}\n{"id":2,"late":true}\n{"id":3,"who":"ann"}\n')
    site.apply("a", document("in.log"))
    fault = site.fault("before-evolved", "stop")
    with ThreadPoolExecutor() as pool:
        running = pool.submit(site.waybill, "run", "a")
        taken = fault.with_name(f"{fault.name}.taken")
        while not taken.exists():
            time.sleep(0.05)
        changed = document("in.log")
        changed["parse"]["fields"] = {"id": "int32", "who": "text"}
        site.apply("a", changed)
        os.kill(int(taken.read_text()), signal.SIGCONT)
        running.result()
    assert site.json("connectors", "show", "a")["document"]["parse"]["fields"] == {
        "id": "int32",
        "who": "text",
        "late": "bool",
    }
    site.waybill("run", "a")
    assert [row["id"] for row in out(site)] == [1, 2, 3]
    assert out(site)[1:] == [{"id": 2, "who": None, "late": True}, {"id": 3, "who": "ann", "late": None}]
