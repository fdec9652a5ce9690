"""Many histories, or one of them again.

`--histories 10000 [--seed N]` runs the seeds N, N + 1 and so on, prints what happened in how many of them, and ends
with exit code 1 when a rule was broken. Even seeds are histories of one topic that is copied record by record, odd
ones journeys between files, logs and topics; with `--focus NAME` all are journeys in which one thing happens often.
`--replay SEED` prints one of them step by step, with `--short` what was done and said, without the steps.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterable, Iterator
from functools import partial
from multiprocessing import get_context

from tests.simulator.focus import FOCI
from tests.simulator.report import table
from tests.simulator.running import Result, history_of, told_again
from tests.simulator.scheduler import STEP

_SHOWN = 20


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulator", description=__doc__)
    parser.add_argument("--histories", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=None, help="the first seed; by default one of the clock")
    parser.add_argument("--replay", type=int, metavar="SEED", help="print this history step by step")
    parser.add_argument("--short", action="store_true", help="with --replay: without the steps of processes")
    parser.add_argument("--focus", choices=sorted(FOCI), help="only journeys about this")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    if options.replay is not None:
        return _replay(options.replay, options.focus, short=options.short)
    first = options.seed if options.seed is not None else int(time.time()) * 100_000
    print(f"{options.histories} histories, seeds from {first}", flush=True)
    started = time.monotonic()
    results = _all(range(first, first + options.histories), options.processes, options.focus)
    print(table(results, time.monotonic() - started))
    broken = [result for result in results if result.problems]
    for result in broken[:_SHOWN]:
        about = f" --focus {options.focus}" if options.focus else ""
        print(f"step by step: python -m tests.simulator --replay {result.seed}{about}")
    return 1 if broken else 0


def _all(seeds: range, processes: int, focus: str | None) -> list[Result]:
    pool = get_context("spawn").Pool(processes)
    try:
        return list(_told(pool.imap(partial(history_of, focus=focus), seeds, chunksize=20)))
    finally:
        pool.close()
        pool.join()


def _told(results: Iterable[Result]) -> Iterator[Result]:
    """Says how far it is; what is broken is told at once."""
    for count, result in enumerate(results, 1):
        if result.problems:
            print(f"seed {result.seed}: {'; '.join(result.problems[:4])}", flush=True)
        if count % 1000 == 0:
            print(f"{count:,} histories", flush=True)
        yield result


def _replay(seed: int, focus: str | None, *, short: bool) -> int:
    trace, result = told_again(seed, focus)
    print("\n".join(line for line in trace if not (short and f"  {STEP}" in line)))
    for problem in result.problems:
        print(f"BROKEN: {problem}")
    return 1 if result.problems else 0


if __name__ == "__main__":
    sys.exit(main())
