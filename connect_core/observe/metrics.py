"""What a task's last run did, as metrics in a file that Prometheus' node exporter picks up.

Runs are short, so there is nobody to scrape: each leaves one file in the folder `metrics` of the home, for the textfile
collector (`node_exporter --collector.textfile.directory=.waybill/metrics`). It holds what this run did; sums over runs
are in the ledger.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from connect_core.observe.steps import Step

_LABELS = ("connector", "task")


@dataclass(frozen=True)
class Passed:
    """How often a run got to a step, and when last (UTC)."""

    times: int
    last: datetime


def write_metrics(
    home: Path, connector: str, task: int, steps: Mapping[Step, Passed], records: Mapping[str, int]
) -> Path:
    """Replaces the file of this task, whole. `records` are the sums of the run's receipts by their field."""
    from prometheus_client import CollectorRegistry, Gauge, write_to_textfile  # 30 ms that only the end of a run pays

    registry = CollectorRegistry()
    passed = Gauge("waybill_run_steps", "How often the last run got to a step", [*_LABELS, "step"], registry=registry)
    last = Gauge(
        "waybill_run_step_timestamp_seconds",
        "When the last run got to a step for the last time",
        [*_LABELS, "step"],
        registry=registry,
    )
    counted = Gauge(
        "waybill_run_records", "Records of the last run's receipts, by field", [*_LABELS, "field"], registry=registry
    )
    for step, seen in steps.items():
        passed.labels(connector, task, step).set(seen.times)
        last.labels(connector, task, step).set(seen.last.timestamp())
    for field, count in records.items():
        counted.labels(connector, task, field).set(count)
    folder = home / "metrics"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{connector}.{task}.prom"
    write_to_textfile(str(path), registry)
    return path
