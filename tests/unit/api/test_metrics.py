"""`GET /metrics`: what Prometheus reads is what the ledger has; read here by the parser of its own library."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from connect_core.api.metrics import text_of
from connect_core.ledger import ConnectorFigures, EndedRun, StreamSums
from connect_core.service.metrics import CATALOGUE, OTHERS, folded, full_name
from tests.unit.api.test_rocketmq_connect import served
from tests.unit.cli.conftest import Waybill

Read = dict[str, dict[tuple[tuple[str, str], ...], float]]
T0 = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SUMS = {
    "read": 10,
    "filtered": 1,
    "rejected": 2,
    "delivered": 5,
    "deduplicated": 2,
    "duplicates": 3,
    "possible_duplicates": 4,
    "bytes_read": 100,
    "bytes_written": 90,
    "seconds": 0.5,
}
DOCUMENT = {"source": {"rocketmq": {}}, "sink": {"file": {}}}


@pytest.fixture(scope="module")
def server() -> Iterator[httpx.URL]:
    """One for all tests of a module: it looks for its ledger at each request."""
    with served(gets_change=False) as client:
        yield client.base_url


@pytest.fixture
def client(server: httpx.URL, folder: Path) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server, trust_env=False, verify=False) as client:
        yield client


def read(text: str) -> Read:
    """By name of the sample: labels, sorted, and the value."""
    found: Read = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample.value
    return found


def scraped(client: httpx.Client) -> Read:
    answer = client.get("/metrics")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return read(answer.text)


def of(**labels: str) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(labels.items()))


def figures(name: str = "in", **changes: object) -> ConnectorFigures:
    made = ConnectorFigures("0" * 12, name, "running", DOCUMENT)
    made.settled = {"live": StreamSums(2, SUMS, T0)}
    for key, value in changes.items():
        setattr(made, key, value)
    return made


def written(*several: ConnectorFigures, detailed: int = 1000) -> Read:
    return read(text_of(folded(several, detailed)).decode())


def test_without_a_ledger_there_are_no_connectors(client: httpx.Client) -> None:
    found = scraped(client)
    assert found["waybill_connectors"] == {of(state=state): 0 for state in ("running", "paused", "stopped")}
    assert "waybill_records_read_total" not in found


@pytest.mark.usefixtures("applied")
def test_what_a_run_moved_is_counted(client: httpx.Client, waybill: Waybill) -> None:
    before = scraped(client)
    live = of(connector="copy", stream="live")
    assert before["waybill_records_delivered_total"] == {live: 0}, "a counter begins at 0, so that its rise is seen"
    assert waybill("run", "copy", "--engine", "inline").code == 0
    found = scraped(client)
    assert found["waybill_records_read_total"] == {live: 3}
    assert found["waybill_records_delivered_total"] == {live: 3}
    assert found["waybill_runs_total"][of(connector="copy", outcome="done")] == 1
    assert found["waybill_lag"] == {of(connector="copy", unit="bytes"): 0}
    assert found["waybill_newest_run_failed"] == {of(connector="copy"): 0}
    assert found["waybill_connector_info"] == {of(connector="copy", source="file", sink="file"): 1}
    assert found["waybill_newest_receipt_timestamp_seconds"][live] == pytest.approx(
        datetime.now(UTC).timestamp(), abs=60
    )


@pytest.mark.usefixtures("applied")
def test_a_paused_connector_and_one_that_is_deleted(client: httpx.Client, waybill: Waybill) -> None:
    assert waybill("connectors", "pause", "copy").code == 0
    found = scraped(client)
    assert found["waybill_connector_paused"] == {of(connector="copy"): 1}
    assert found["waybill_connectors"][of(state="paused")] == 1
    assert waybill("connectors", "delete", "copy", "--yes").code == 0
    assert "waybill_connector_paused" not in scraped(client)


def test_a_ledger_that_cannot_be_asked_fails_the_scrape(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAYBILL_DATABASE_URL", "postgresql://waybill:geheim@127.0.0.1:9/ledger")
    answer = client.get("/metrics")
    assert (answer.status_code, answer.headers["content-type"]) == (503, "text/plain; charset=utf-8")
    assert "geheim" not in answer.text
    assert "ledger does not answer" in answer.text


@pytest.mark.parametrize("headers", [{"Host": "example.org"}, {"Origin": "http://example.org"}])
def test_other_names_and_other_sites_are_refused_as_on_every_route(
    client: httpx.Client, headers: dict[str, str]
) -> None:
    assert client.get("/metrics", headers=headers).status_code == 403


def test_it_is_only_read(client: httpx.Client) -> None:
    assert client.post("/metrics").status_code == 405


def test_every_metric_of_the_catalogue_is_written() -> None:
    one = figures(
        letters={"parse": 2, "someday": 1},
        runs={"done": 3, "running": 1},
        ended=[EndedRun(0, "failed", T0, T0.replace(minute=5), {"lag": 12})],
        open_ranges=1,
        gaps=2,
        held_up=3,
        leases_held=1,
        oldest_lease_at=T0,
        epoch=7,
    )
    other = replace(one, name="out", document={"source": {"file": {}}, "sink": {"rocketmq": {}}})
    found = written(one, other)
    assert set(found) == {full_name(metric) for metric in CATALOGUE.values()}
    mine = {
        name: [value for labels, value in samples.items() if ("connector", "in") in labels]
        for name, samples in found.items()
    }
    assert mine["waybill_records_filtered_total"] == [1]
    assert mine["waybill_records_duplicates_total"] == [3]
    assert mine["waybill_newest_run_seconds"] == [60]
    assert mine["waybill_lease_epoch"] == [7]
    assert found["waybill_lag"][of(connector="in", unit="records")] == 12
    assert mine["waybill_oldest_lease_timestamp_seconds"] == [T0.timestamp()]
    assert found["waybill_dead_letters_total"][of(connector="in", stage="parse")] == 2
    assert found["waybill_dead_letters_total"][of(connector="in", stage="other")] == 1
    assert found["rocketmq_connect_sink_record_read_total"] == {of(connector="in"): 10}
    assert found["rocketmq_connect_total_records_skipped_total"][of(connector="in")] == 2
    assert found["rocketmq_connect_source_record_write_total"] == {of(connector="out"): 5}


def test_a_task_that_the_connector_has_no_more_is_not_failing() -> None:
    ended = [EndedRun(0, "done", T0, T0, {}), EndedRun(1, "failed", T0, T0, {"lag": 3})]
    assert written(figures(ended=ended))["waybill_newest_run_failed"] == {of(connector="in"): 0}
    found = written(figures(ended=ended, document={**DOCUMENT, "tasks": 2}))
    assert found["waybill_newest_run_failed"] == {of(connector="in"): 1}
    assert found["waybill_lag"] == {of(connector="in", unit="records"): 3}


def test_a_connector_without_rocketmq_has_no_names_of_rocketmq_connect() -> None:
    found = written(figures(document={"source": {"file": {}}, "sink": {"file": {}}}))
    assert [name for name in found if name.startswith("rocketmq_connect_")] == []


def test_the_streams_of_a_connector_are_of_four_kinds() -> None:
    streams = {name: StreamSums(1, SUMS, T0) for name in ("live", "backfill-1", "anything", "errors-sink")}
    found = written(figures(settled=streams))["waybill_records_read_total"]
    kinds = {"live": 10, "backfill": 20, "errors-sink": 10}
    assert found == {of(connector="in", stream=kind): count for kind, count in kinds.items()}


def test_connectors_behind_the_limit_are_in_one_sum() -> None:
    found = written(
        *(figures(f"c{number}", ended=[EndedRun(0, "done", T0, T0, {})]) for number in range(5)), detailed=2
    )
    read = found["waybill_records_read_total"]
    assert read == {of(connector=name, stream="live"): n for name, n in (("c0", 10), ("c1", 10), (OTHERS, 30))}
    assert set(found["waybill_newest_run_end_timestamp_seconds"]) == {of(connector="c0"), of(connector="c1")}
    assert found["waybill_connectors_summed"] == {(): 3}
    assert found["waybill_connectors"][of(state="running")] == 5


def test_a_name_cannot_leave_its_label() -> None:
    odd = 'a"} 1\nwaybill_open_ranges{connector="b\\'
    found = written(figures(odd))
    assert found["waybill_open_ranges"] == {of(connector=odd): 0}


def test_a_system_of_another_package_that_is_gone_is_other() -> None:
    found = written(figures(document={"source": {"their-own": {}}, "sink": {"file": {}}}))
    assert found["waybill_connector_info"] == {of(connector="in", source="other", sink="file"): 1}
