"""`python -m tests.bench`: takes the figures and shows them."""

from __future__ import annotations

import argparse
import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path

from tests.bench.freshness import freshness
from tests.bench.measures import Row, files_to_topic, small_runs, topic_to_file, worker_memory
from tests.bench.place import Place, own_place

_ROOT = Path(__file__).resolve().parents[2]
_PAGE = _ROOT / "docs" / "figures.md"
_MARK = "<!-- figures -->"
MEASURES = ("in", "out", "memory", "small", "fresh")


def main() -> None:
    chosen = _arguments()
    with own_place() as place:
        rows = [row for measure in chosen.measures or MEASURES for row in _taken(measure, place, chosen)]
    text = _table(rows, chosen.lines, chosen.repeats)
    print(text)
    if chosen.write:
        head, mark, _ = _PAGE.read_text().partition(_MARK)
        _PAGE.write_text(f"{head}{mark}\n\n{text}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="Figures; takes about ten minutes.")
    parser.add_argument("measures", nargs="*", choices=[*MEASURES, []], help="all when left out")
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3, help="of each pair (default 3)")
    parser.add_argument("--write", action="store_true", help="put the table into docs/figures.md")
    return parser.parse_args()


def _taken(measure: str, place: Place, chosen: argparse.Namespace) -> list[Row]:
    if measure == "in":
        return [files_to_topic(place, chosen.lines, files, chosen.repeats) for files in (1, 2)]
    if measure == "out":
        return [topic_to_file(place, chosen.lines, 2, chosen.repeats)]
    if measure == "memory":
        return worker_memory(place, chosen.lines)
    if measure == "fresh":
        return freshness(place)
    return small_runs(place, max(chosen.repeats, 5))


def _table(rows: list[Row], lines: int, repeats: int) -> str:
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=_ROOT, capture_output=True, text=True, check=False
    )
    when = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    head = (
        f"Taken {when}, commit {described.stdout.strip() or 'unknown'}, {os.cpu_count()} cores, {repeats} repeats.\n\n"
    )
    table = ["| what | Waybill | bare loop | |", "|---|---|---|---|"]
    table += [f"| {row.what} | {row.waybill} | {row.bare} | {row.remark} |" for row in rows]
    return head + "\n".join(table) + "\n"


if __name__ == "__main__":
    main()
