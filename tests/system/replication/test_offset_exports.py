"""The offsets of a topic go to another ledger: what comes later is moved once, and an open range is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.servers import RocketMQ
from tests.site import Site, new_site

pytestmark = pytest.mark.server


def fill(site: Site, *lines: str) -> None:
    with (site.folder / "in.log").open("a") as file:
        file.writelines(f"{line}\n" for line in lines)
    site.waybill("run", "in", "--engine", "inline")


def out(site: Site, topic: str) -> dict[str, Any]:
    ends = {"source": {"rocketmq": {"name_servers": site.name_servers, "topics": [topic]}}}
    return {**ends, "sink": {"file": {"path": "out.txt"}}, "schedule": {"manual": True}}


def lines_of(site: Site) -> list[str]:
    return sorted((site.folder / "out.txt").read_text().split())


def test_a_topic_is_read_on_with_another_ledger(sqlite_site: Site, rocketmq: RocketMQ, tmp_path: Path) -> None:
    first = sqlite_site
    cluster = {"name_servers": first.name_servers, "topic": first.topic, "queues": 2}
    first.apply("in", {"source": {"file": {"path": "in.log"}}, "sink": {"rocketmq": cluster}})
    fill(first, *(f"a{number}" for number in range(40)))
    first.apply("out", out(first, first.topic))
    first.waybill("run", "out", "--engine", "inline")
    assert len(lines_of(first)) == 40
    (tmp_path / "second").mkdir()
    second = new_site(tmp_path / "second", f"sqlite:///{tmp_path}/second/.waybill/ledger.db", rocketmq)
    second.apply("out", out(second, first.topic))
    (tmp_path / "second" / "offsets.json").write_text(first.waybill("offsets", "export", "out"))
    told = second.json("offsets", "import", "out", "offsets.json")
    assert sum(told["after"].values()) == 40
    fill(first, "b1", "b2")
    second.waybill("run", "out", "--engine", "inline")
    assert lines_of(second) == ["b1", "b2"]

    first.fault("executed")
    first.waybill("run", "out", "--engine", "inline", code=-9)
    with first.start("offsets", "export", "out") as exporting:
        said = exporting.communicate()[1]
    assert "of out not settled: what was delivered of it would be delivered again" in said
