"""What a run leaves for the node exporter is what its receipts say."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from tests.site import Site


def test_the_metrics_of_a_run_are_those_of_its_receipts(bare_site: Site) -> None:
    (bare_site.folder / "in.log").write_bytes(b"one\ntwo\nthree\n")
    bare_site.apply("copy", {"source": {"file": {"path": "in.log"}}, "sink": {"file": {"path": "out.log"}}})
    bare_site.waybill("run", "copy", "--engine", "inline")
    text = (bare_site.home / "metrics" / "copy.0.prom").read_text()
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    records = {s.labels["field"]: s.value for s in samples if s.name == "waybill_run_records"}
    assert (records["read"], records["delivered"], records["duplicates"]) == (3, 3, 0)
    steps = {s.labels["step"]: s.value for s in samples if s.name == "waybill_run_steps"}
    assert steps["planned"] >= steps["settled"] == 1
