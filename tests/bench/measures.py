"""What is measured. Each measure returns rows for the table: what, Waybill, bare, ratio or remark."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from statistics import median

from tests.bench.place import Place, Timed
from tests.bench.telling import Row

_LINE_BYTES = 200
_MEGABYTE = 1024 * 1024
_numbers = count(1)


def write_logs(folder: Path, lines: int, files: int) -> list[Path]:
    """`lines` of 200 bytes without their newline, spread over `files`; all different."""
    folder.mkdir(parents=True)
    paths = [folder / f"{number}.log" for number in range(files)]
    for number, path in enumerate(paths):
        with path.open("w") as file:
            file.writelines(f"{number} {line:012d} ".ljust(_LINE_BYTES, "x") + "\n" for line in range(lines // files))
    return paths


def files_to_topic(place: Place, lines: int, files: int, repeats: int) -> Row:
    logs = write_logs(place.folder / f"logs-{next(_numbers)}", lines, files)

    def ours() -> Timed:
        name = f"in-{next(_numbers)}"
        sink = {"rocketmq": {"connection": "main", "topic": name, "queues": files}}
        place.apply(name, {"file": {"path": str(logs[0].parent / "*.log")}}, sink)
        return place.run(name)

    def bare() -> float:
        return place.bare("in", f"bare-{next(_numbers)}", *logs)

    what = f"file -> RocketMQ, {files} file{'s' * (files > 1)}, {lines:,} lines of {_LINE_BYTES} bytes"
    return compared(what, lines, ours, bare, repeats)


def topic_to_file(place: Place, lines: int, queues: int, repeats: int) -> Row:
    topic = f"full-{next(_numbers)}"
    place.bare("in", topic, *write_logs(place.folder / topic, lines, queues))

    def ours() -> Timed:
        name = f"out-{next(_numbers)}"
        target = place.folder / f"{name}.log"
        place.apply(name, {"rocketmq": {"connection": "main", "topics": topic}}, {"file": {"path": str(target)}})
        try:
            return place.run(name)
        finally:
            target.unlink(missing_ok=True)

    def bare() -> float:
        target = place.folder / f"bare-{next(_numbers)}.log"
        try:
            return place.bare("out", topic, target)
        finally:
            target.unlink(missing_ok=True)

    what = f"RocketMQ -> file, {queues} queue{'s' * (queues > 1)}, {lines:,} lines of {_LINE_BYTES} bytes"
    return compared(what, lines, ours, bare, repeats)


def worker_memory(place: Place, lines: int) -> list[Row]:
    """The peak of a worker for a tenth of the lines and for all, in this order: a peak never goes down."""
    rows = []
    for amount in (lines // 10, lines):
        logs = write_logs(place.folder / f"logs-{next(_numbers)}", amount, 1)
        name = f"in-{next(_numbers)}"
        source = {"file": {"path": str(logs[0])}}
        place.apply(name, source, {"rocketmq": {"connection": "main", "topic": name, "queues": 1}})
        inward = place.run(name, watched=True).worker_bytes
        back = f"out-{next(_numbers)}"
        target = place.folder / f"{back}.log"
        place.apply(back, {"rocketmq": {"connection": "main", "topics": name}}, {"file": {"path": str(target)}})
        outward = place.run(back, watched=True).worker_bytes
        shown = f"{inward // _MEGABYTE} MiB to RocketMQ, {outward // _MEGABYTE} MiB to the file"
        rows.append(Row(f"most memory of a worker, {amount:,} lines", shown, "", "resident, peak"))
    return rows


def small_runs(place: Place, repeats: int) -> list[Row]:
    """Engine warm: a run with nothing to do, and one with one line."""
    (log,) = write_logs(place.folder / f"logs-{next(_numbers)}", 10, 1)
    name = f"in-{next(_numbers)}"
    sink = {"rocketmq": {"connection": "main", "topic": name, "queues": 1}}
    place.apply(name, {"file": {"path": str(log)}}, sink)
    place.run(name)

    def one_line() -> Timed:
        with log.open("a") as file:
            file.write("one line more\n")
        return place.run(name)

    return [
        _small("run with nothing to do", [place.run(name) for _ in range(repeats)]),
        _small("run with one line", [one_line() for _ in range(repeats)]),
    ]


def _small(what: str, runs: list[Timed]) -> Row:
    parts = {part: median(run.parts.get(part, 0.0) for run in runs) for part in runs[0].parts}
    shown = ", ".join(f"{part} {seconds * 1000:.0f}" for part, seconds in parts.items())
    process = median(run.process_s for run in runs)
    return Row(what, f"{median(run.run_s for run in runs):.3f} s", "", f"ms: {shown}; process {process:.2f} s on top")


def compared(what: str, records: int, ours: Callable[[], Timed], bare: Callable[[], float], repeats: int) -> Row:
    """Medians of interleaved pairs; the ratio is the median of the ratios of the pairs. A pair goes before them that
    is not counted: a fresh broker compiles its hot paths in it."""
    ours()
    bare()
    pairs = []
    for number in range(repeats):
        timed, loop_s = ours(), bare()
        pairs.append((timed, loop_s))
        shown = f"{records / timed.run_s:,.0f}/s, bare {records / loop_s:,.0f}/s, ratio {loop_s / timed.run_s:.2f}"
        print(f"{what} {number + 1}/{repeats}: {shown}, {timed.parts}", file=sys.stderr, flush=True)
    rate = records / median(timed.run_s for timed, _ in pairs)
    bare_rate = records / median(loop_s for _, loop_s in pairs)
    ratio = median(loop_s / timed.run_s for timed, loop_s in pairs)
    whole = median(loop_s / timed.wall_s for timed, loop_s in pairs)
    remark = f"ratio {ratio:.2f}; {whole:.2f} with the start of the process"
    return Row(what, f"{rate:,.0f}/s", f"{bare_rate:,.0f}/s", remark)
