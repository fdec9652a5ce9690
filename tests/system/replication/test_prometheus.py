"""A real Prometheus scrapes `waybill serve`: it has the series, rules fire and rest, and each panel has an answer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from connect_core.service.metrics import CATALOGUE, full_name
from tests.prometheus import Prometheus, eventually, promtool
from tests.site import Site
from tests.system.replication.test_rest import served

pytestmark = [pytest.mark.server]

CONF = Path(__file__).resolve().parents[3] / "conf"
RULES = CONF / "prometheus" / "waybill-alerts.yaml"
DASHBOARD = json.loads((CONF / "grafana" / "waybill.json").read_text())
SOON = "1s"
"""What the test puts in the place of minutes."""


def document(name: str, **more: object) -> dict[str, object]:
    ends = {"source": {"file": {"path": f"{name}.log"}}, "sink": {"file": {"path": f"{name}.out"}}}
    parse = {"format": "json", "fields": {"id": "int64"}}
    return {"version": 1, "name": name, **ends, "parse": parse, "encode": {"format": "json"}, **more}


def lines(site: Site, name: str, *texts: str) -> None:
    with (site.folder / f"{name}.log").open("a") as log:
        log.writelines(f"{text}\n" for text in texts)


def quick(folder: Path) -> Path:
    """The rules as they are, but for how long a thing has to last."""
    rules = yaml.safe_load(RULES.read_text())
    for group in rules["groups"]:
        for rule in group["rules"]:
            if "for" in rule:
                rule["for"] = SOON
    path = folder / "rules.yaml"
    path.write_text(yaml.safe_dump(rules))
    return path


def panels() -> Iterator[str]:
    for panel in DASHBOARD["panels"]:
        yield from (target["expr"].replace("$connector", ".*") for target in panel["targets"])


def test_figures_alerts_and_panels_in_a_real_prometheus(bare_site: Site, prometheus: Prometheus) -> None:
    site = bare_site
    tolerant = document("letters", errors={"tolerance": "all"})
    site.apply_all({"well": document("well"), "fails": document("fails"), "letters": tolerant})
    for name in ("well", "fails", "letters"):
        lines(site, name, '{"id": 1}', '{"id": 2}')
        site.waybill("run", name, "--engine", "inline")
    with served(site) as (client, process):
        assert promtool("check", "metrics", given=client.get("/metrics").text) == ""
        promtool("check", "rules", str(RULES))
        prometheus.start(client.base_url.netloc.decode(), quick(site.folder))
        scraped(prometheus, client)
        rules_are_sound(prometheus)

        lines(site, "fails", "no JSON")
        lines(site, "letters", "no JSON", '{"id": 3}')
        site.waybill("run", "fails", "--engine", "inline", code=5)
        site.waybill("run", "letters", "--engine", "inline")
        wanted = {("WaybillRunsFail", "fails"), ("WaybillDeadLetters", "letters")}
        eventually(lambda: wanted <= prometheus.alerts(), prometheus.alerts)
        assert {connector for _, connector in prometheus.alerts()} == {"fails", "letters"}
        each_panel_has_an_answer(prometheus)

        site.waybill("connectors", "pause", "fails")
        rests = ("WaybillRunsFail", "fails")
        eventually(lambda: rests not in prometheus.alerts(), prometheus.alerts)
        process.terminate()
        process.wait(timeout=30)
        away = {("WaybillNotAnswering", "")}
        eventually(lambda: away <= prometheus.alerts(), prometheus.alerts)


def scraped(prometheus: Prometheus, client: httpx.Client) -> None:
    """Each series that the server tells is there, by the same value."""
    eventually(lambda: prometheus.value('up{job="waybill"}') == 1, lambda: prometheus.asked("targets"))
    names = set(re.findall(r"^(\w+)(?:\{| )", client.get("/metrics").text, re.MULTILINE))
    known = set(prometheus.asked("label/__name__/values"))
    assert names <= known
    assert names <= {full_name(one) for one in CATALOGUE.values()}
    assert prometheus.value('waybill_records_delivered_total{connector="well",stream="live"}') == 2
    assert prometheus.value('waybill_newest_run_failed{connector="fails"}') == 0
    assert {one["metric"]["connector"] for one in prometheus.query("waybill_connector_info")} == {
        *("well", "fails", "letters")
    }
    types = {name: told[0]["type"] for name, told in prometheus.asked("metadata").items() if name in names}
    assert types.keys() == names
    assert {name for name, kind in types.items() if kind == "counter"} == {
        name for name in names if name.endswith("_total")
    }


def rules_are_sound(prometheus: Prometheus) -> None:
    (group,) = prometheus.asked("rules")["groups"]
    wanted: list[dict[str, Any]] = yaml.safe_load(RULES.read_text())["groups"][0]["rules"]
    assert [one["name"] for one in group["rules"]] == [one["alert"] for one in wanted]

    def states() -> set[tuple[str, str]]:
        return {(one["health"], one["state"]) for one in prometheus.asked("rules")["groups"][0]["rules"]}

    eventually(lambda: states() == {("ok", "inactive")}, states)


def each_panel_has_an_answer(prometheus: Prometheus) -> None:
    (variable,) = (one for one in DASHBOARD["templating"]["list"] if one["type"] == "query")
    matched = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["query"]["query"])
    assert matched
    assert set(prometheus.asked(f"label/{matched[2]}/values", **{"match[]": matched[1]})) >= {"well", "fails"}
    empty = {expression for expression in panels() if not prometheus.query(expression)}
    assert not {one for one in empty if "oldest_lease" not in one}, "no lease is held now"
