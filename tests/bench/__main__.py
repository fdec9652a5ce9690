"""`python -m tests.bench`: takes the figures and shows them."""

from __future__ import annotations

import argparse
import os
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from connect_core import stack
from tests.bench.answers import answers
from tests.bench.change_streams import change_streams
from tests.bench.changes import changes
from tests.bench.copies import MESSAGES, changed, copies
from tests.bench.data_source import data_source
from tests.bench.fleet import CONNECTORS, fleet, idle
from tests.bench.formats import formats
from tests.bench.freshness import freshness, through_airflow
from tests.bench.many import ledgers
from tests.bench.measures import files_to_topic, small_runs, topic_to_file, worker_memory
from tests.bench.mqtt import MESSAGES as MQTT_MESSAGES
from tests.bench.mqtt import into_mqtt
from tests.bench.mqtt_in import mqtt, mqtt_freshness
from tests.bench.parsing import parse
from tests.bench.place import Place, own_place
from tests.bench.rules import rules
from tests.bench.starts import RUNS, starts
from tests.bench.tables import tables
from tests.bench.taking_over import taking_over
from tests.bench.telling import Row
from tests.bench.transforms import transforms
from tests.bench.verifying import verifying

_ROOT = Path(__file__).resolve().parents[2]
_PAGE = _ROOT / "docs" / "figures.md"
_MARK = "<!-- figures -->"
Measure = Callable[[Place, argparse.Namespace], list[Row]]

WITHOUT_SERVERS: dict[str, Callable[[argparse.Namespace], list[Row]]] = {
    "rules": lambda chosen: rules(chosen.repeats),
    "transforms": lambda chosen: transforms(chosen.repeats),
    "formats": lambda chosen: formats(chosen.repeats),
    "answers": lambda chosen: answers(chosen.repeats),
}
WITH_A_DATABASE: dict[str, Measure] = {
    "ledger": lambda place, chosen: ledgers(place, chosen.repeats),
}
WITHOUT_AIRFLOW: dict[str, Measure] = {
    "in": lambda place, chosen: [files_to_topic(place, chosen.lines, files, chosen.repeats) for files in (1, 2)],
    "out": lambda place, chosen: [topic_to_file(place, chosen.lines, 2, chosen.repeats)],
    "across": lambda place, chosen: copies(place, MESSAGES, chosen.repeats),
    "typed": lambda place, chosen: [changed(place, min(chosen.lines, MESSAGES), chosen.repeats)],
    "verify": lambda place, chosen: verifying(place, min(chosen.lines, MESSAGES), chosen.repeats),
    "over": lambda place, chosen: taking_over(place, chosen.lines, chosen.repeats),
    "mqtt": lambda place, chosen: into_mqtt(place, min(chosen.lines, MQTT_MESSAGES), chosen.repeats),
    "mqtt-in": lambda place, chosen: mqtt(place, chosen.lines // 5, chosen.repeats),
    "mqtt-fresh": lambda place, chosen: mqtt_freshness(place),
    "data-source": lambda place, chosen: data_source(place, MESSAGES, chosen.repeats),
    "memory": lambda place, chosen: worker_memory(place, chosen.lines),
    "small": lambda place, chosen: small_runs(place, max(chosen.repeats, 5)),
    "change-streams": lambda place, chosen: change_streams(place, chosen.repeats),
    "tables": lambda place, chosen: tables(place, chosen.lines, chosen.repeats),
    "fresh": lambda place, chosen: freshness(place),
    "parse": lambda place, chosen: parse(place, chosen.repeats),
}
WITH_AIRFLOW: dict[str, Measure] = {
    "idle": lambda place, chosen: idle(place, chosen.seconds),
    "changed": lambda place, chosen: changes(place, max(chosen.repeats, 5)),
    "airflow-start": lambda place, chosen: starts(place, chosen.runs),
    "airflow-fresh": lambda place, chosen: through_airflow(place, chosen.seconds),
    "fleet": lambda place, chosen: fleet(place, chosen.minutes, chosen.connectors),
}
LONG = ("mqtt-in", "mqtt-fresh", "airflow-start", "airflow-fresh", "fleet")
"""Taken when they are named, or with --long: they fill brokers and wait for schedules, about an hour together."""


def main() -> None:
    chosen = _arguments()
    rows = [row for name, measure in WITHOUT_SERVERS.items() if name in _wanted(chosen) for row in measure(chosen)]
    for measures, parts in (
        (WITH_A_DATABASE, (stack.POSTGRESQL,)),
        (WITHOUT_AIRFLOW, stack.DATA_PARTS),
        (WITH_AIRFLOW, stack.ALL),
    ):
        if wanted := [name for name in measures if name in _wanted(chosen)]:
            with own_place(parts) as place:
                rows += [row for name in wanted for row in measures[name](place, chosen)]
    text = _table(rows, chosen.repeats)
    print(text)
    if chosen.write:
        head, mark, _ = _PAGE.read_text().partition(_MARK)
        _PAGE.write_text(f"{head}{mark}\n\n{text}")


def _wanted(chosen: argparse.Namespace) -> list[str]:
    every = [*WITHOUT_SERVERS, *WITH_A_DATABASE, *WITHOUT_AIRFLOW, *WITH_AIRFLOW]
    return chosen.measures or [name for name in every if chosen.long or name not in LONG]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="Takes the figures.")
    parser.add_argument(
        "measures",
        nargs="*",
        choices=[*WITHOUT_SERVERS, *WITH_A_DATABASE, *WITHOUT_AIRFLOW, *WITH_AIRFLOW, []],
        help="which ones",
    )
    parser.add_argument("--long", action="store_true", help="those as well that wait for schedules")
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3, help="of each pair (default 3)")
    parser.add_argument("--runs", type=int, default=RUNS, help=f"of airflow-start, by each schedule (default {RUNS})")
    parser.add_argument("--seconds", type=float, default=60, help="of idle and of each trickle of airflow-fresh")
    parser.add_argument("--minutes", type=float, default=5, help="of the fleet (default 5)")
    parser.add_argument("--connectors", type=int, default=CONNECTORS, help=f"of the fleet (default {CONNECTORS})")
    parser.add_argument("--write", action="store_true", help="put the table into docs/figures.md")
    return parser.parse_args()


def _table(rows: list[Row], repeats: int) -> str:
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
