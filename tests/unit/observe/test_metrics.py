"""A run's metrics, as a node exporter reads them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from connect_core.observe import Passed, Step, write_metrics

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def _samples(path: Path) -> dict[tuple[str, str], float]:
    families = text_string_to_metric_families(path.read_text())
    return {
        (sample.name, sample.labels.get("step") or sample.labels["field"]): sample.value
        for family in families
        for sample in family.samples
        if (sample.labels["connector"], sample.labels["task"]) == ("orders", "1")
    }


def test_steps_and_records_of_a_run(tmp_path: Path) -> None:
    steps = {Step.PLANNED: Passed(3, NOON), Step.SETTLED: Passed(2, NOON)}
    path = write_metrics(tmp_path, "orders", 1, steps, {"read": 200, "duplicates": 0})
    assert path == tmp_path / "metrics" / "orders.1.prom"
    assert _samples(path) == {
        ("waybill_run_steps", "planned"): 3,
        ("waybill_run_steps", "settled"): 2,
        ("waybill_run_step_timestamp_seconds", "planned"): NOON.timestamp(),
        ("waybill_run_step_timestamp_seconds", "settled"): NOON.timestamp(),
        ("waybill_run_records", "read"): 200,
        ("waybill_run_records", "duplicates"): 0,
    }


def test_the_next_run_replaces_what_the_last_one_left(tmp_path: Path) -> None:
    write_metrics(tmp_path, "orders", 1, {Step.FOUND: Passed(1, NOON)}, {"read": 1})
    path = write_metrics(tmp_path, "orders", 1, {Step.LEASED: Passed(1, NOON)}, {})
    assert {label for _, label in _samples(path)} == {"leased"}
    assert list(path.parent.iterdir()) == [path]
