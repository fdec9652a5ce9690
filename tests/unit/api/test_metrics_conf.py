"""The alert rules and the dashboard ask for metrics, and labels of them, that there are."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from connect_core.cli.app import app
from connect_core.service.metrics import CATALOGUE, OUTCOMES, STREAMS, full_name
from tests.unit.cli.conftest import built

CONF = Path(__file__).resolve().parents[3] / "conf"
ALERTS = [
    rule
    for group in yaml.safe_load((CONF / "prometheus" / "waybill-alerts.yaml").read_text())["groups"]
    for rule in group["rules"]
]
DASHBOARD = json.loads((CONF / "grafana" / "waybill.json").read_text())
LABELS = {full_name(metric): set(metric.labels) for metric in CATALOGUE.values()}
VALUES = {"stream": set(STREAMS), "outcome": set(OUTCOMES), "connector": {"$connector"}}
_USED = re.compile(r"\b((?:waybill|rocketmq_connect)_\w+)(?:\{([^}]*)\})?")
_MATCHER = re.compile(r'(\w+)(?:=~|!~|!=|=)"([^"]*)"')


def expressions() -> Iterator[str]:
    yield from (rule["expr"] for rule in ALERTS)
    for panel in DASHBOARD["panels"]:
        yield from (target["expr"] for target in panel["targets"])
    yield from (one["query"]["query"] for one in DASHBOARD["templating"]["list"] if one["type"] == "query")


def test_there_are_expressions_to_look_at() -> None:
    assert len(ALERTS) == 9
    assert sum(1 for _ in expressions()) > 20


@pytest.mark.parametrize("expression", list(expressions()))
def test_what_is_asked_for_is_there(expression: str) -> None:
    used = _USED.findall(expression)
    assert used
    for name, matchers in used:
        assert name in LABELS
        for label, value in _MATCHER.findall(matchers):
            assert label in LABELS[name]
            assert value in VALUES[label]


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: rule["alert"])
def test_an_alert_says_what_and_what_to_do_next(rule: dict[str, Any]) -> None:
    assert rule["labels"]["severity"] in ("page", "warn")
    assert set(rule["annotations"]) == {"summary", "next_step"}
    commands = re.findall(r"^waybill ([a-z-]+)", rule["annotations"]["next_step"])
    assert set(commands) <= set(built(app).commands)


def test_panels_have_their_own_numbers_and_places() -> None:
    panels = DASHBOARD["panels"]
    assert [panel["id"] for panel in panels] == list(range(1, len(panels) + 1))
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels]
    assert len(set(places)) == len(places)
    assert all(panel["description"] for panel in panels)
