"""Where a lane's processor time goes: lanes worked through in this process, with a clock or cProfile around them.

For people who make the hot path faster: `python -m tests.bench.profiling [in|out] [--lines N] [--profile]`. Processor
time, not wall time: it is the same on a busy machine.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import pstats
import time
from collections.abc import Sequence
from contextlib import nullcontext

from connect_core import stack
from connect_core.errors import EngineFailed
from connect_core.replication.driver.context import RunListener
from connect_core.replication.driver.prepare import run_context
from connect_core.replication.driver.run import run_connector
from connect_core.replication.worker.lane import KeptSource, scan, work
from connect_core.rocketmq import Client, ClientOptions
from connect_core.sdk.scan import ScanResult
from connect_core.service.opened import working
from connect_core.work import Lane, Outcome, ScanTask
from tests.bench import bare
from tests.bench.measures import write_logs
from tests.bench.place import Place, own_place


class InProcessEngine:
    """An engine without a worker: no timer, no lock, no fence. For profiles only."""

    described = "in-process"

    def __init__(self, profile: cProfile.Profile | None) -> None:
        self.cpu_s = 0.0
        self._profile = profile

    def execute(self, lanes: Sequence[Lane]) -> list[Outcome]:
        begun = time.process_time()
        with self._profile or nullcontext():
            outcomes = [outcome for lane in lanes for outcome in work(lane, KeptSource())]
        self.cpu_s += time.process_time() - begun
        if failed := [outcome.failure for outcome in outcomes if outcome.failure]:
            raise EngineFailed(str(failed))
        return outcomes

    def scan(self, task: ScanTask) -> dict[int, ScanResult]:
        return scan(task)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.profiling")
    parser.add_argument("direction", choices=["in", "out"])
    parser.add_argument("--lines", type=int, default=300_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--profile", action="store_true", help="with cProfile, which makes it about twice as slow")
    chosen = parser.parse_args()
    with own_place([part for part in stack.DATA_PARTS if part != stack.ENGINE]) as place:
        os.environ["WAYBILL_HOME"] = str(place.home)
        os.environ["WAYBILL_QUANTUM_S"], os.environ["WAYBILL_LEASE_TTL_S"] = "100", "200"
        logs = write_logs(place.folder / "logs", chosen.lines, 2)
        client = Client(ClientOptions(name_servers=(place.name_servers,)))
        for number in range(chosen.repeats):
            begun = time.process_time()
            bare.files_to_topic(client, logs, f"bare-{number}")
            between = time.process_time()
            bare.topic_to_file(client, f"bare-{number}", place.folder / "bare.log")
            bare_s = {"in": between - begun, "out": time.process_time() - between}[chosen.direction]
            profile = cProfile.Profile() if chosen.profile and number == chosen.repeats - 1 else None
            ours_s = _ours(place, chosen.direction, number, profile)
            lane_us, bare_us = (seconds / chosen.lines * 1e6 for seconds in (ours_s, bare_s))
            print(f"lane {lane_us:.2f} µs a line, bare loop {bare_us:.2f} µs, ratio {bare_us / lane_us:.2f}")
        client.close()
    if profile:
        pstats.Stats(profile).sort_stats("tottime").print_stats(35)


def _ours(place: Place, direction: str, number: int, profile: cProfile.Profile | None) -> float:
    if direction == "in":
        sink = {"rocketmq": {"connection": "main", "topic": f"in-{number}", "queues": 2}}
        place.apply(f"in-{number}", {"file": {"path": str(place.folder / "logs" / "*.log")}}, sink)
    else:
        source = {"rocketmq": {"connection": "main", "topics": f"bare-{number}"}}
        place.apply(f"out-{number}", source, {"file": {"path": str(place.folder / f"out-{number}.log")}})
    engine = InProcessEngine(profile)
    with working() as opened:
        connector = opened.ledger.connector(f"{direction}-{number}")
        listener = RunListener(lambda text: None, lambda progress: None)
        run_connector(run_context(opened.ledger, opened.settings, opened.home, connector, engine, listener))
    return engine.cpu_s


if __name__ == "__main__":
    main()
