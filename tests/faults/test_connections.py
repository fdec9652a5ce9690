"""A connection's file is edited while a range is open: that range goes on where it was planned, what comes next where
the file points now (delivery rule 8)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.site import Site

pytestmark = pytest.mark.fault

LINES = [b"line %d\n" % number for number in range(2_000)]
KILLED = -9


def _connect(folder: Path, name: str, text: str) -> None:
    path = folder / "conf" / "connections" / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize("step", ["planned", "executed"])
def test_a_target_that_a_connection_names_anew(bare_site: Site, step: str) -> None:
    site = bare_site
    log = site.folder / "app.log"
    log.write_bytes(b"".join(LINES))
    (site.folder / "old").mkdir()
    (site.folder / "new").mkdir()
    _connect(site.folder, "out", "file: {path: old/lines.txt}\n")
    site.apply("copy", {"source": {"file": {"path": "app.log"}}, "sink": {"file": {"connection": "out"}}})
    site.fault(step)
    site.waybill("run", "copy", "--engine", "inline", code=KILLED)

    _connect(site.folder, "out", "file: {path: new/lines.txt}\n")
    with log.open("ab") as more:
        more.write(b"later\n")
    site.waybill("run", "copy", "--engine", "inline")
    assert (site.folder / "old" / "lines.txt").read_bytes() == b"".join(LINES), "finished where it was begun"
    assert (site.folder / "new" / "lines.txt").read_bytes() == b"later\n"
    receipts = site.json("receipts", "copy")["receipts"]
    assert sum(receipt["delivered"] + receipt["deduplicated"] for receipt in receipts) == len(LINES) + 1


@pytest.mark.server
@pytest.mark.fault(costly=True)
def test_a_cluster_that_a_connection_names_anew(site: Site) -> None:
    """The open range is finished in the cluster where it stands, though the file names one that does not answer."""
    log = site.folder / "app.log"
    log.write_bytes(b"".join(LINES))
    _connect(site.folder, "main", f"rocketmq: {{name_servers: {site.name_servers}}}\n")
    site.apply(
        "copy",
        {
            "source": {"file": {"path": "app.log"}},
            "sink": {"rocketmq": {"connection": "main", "topic": site.topic, "queues": 1}},
        },
    )
    site.fault("executed")
    site.waybill("run", "copy", code=KILLED)

    _connect(site.folder, "main", "rocketmq: {name_servers: ['127.0.0.1:9']}\n")
    with log.open("ab") as more:
        more.write(b"later\n")
    site.waybill("run", "copy", code=3)
    assert b"\n".join(site.messages()) + b"\n" == b"".join(LINES), "once each"
    (receipt,) = site.json("receipts", "copy")["receipts"]
    assert (receipt["deduplicated"], receipt["delivered"]) == (len(LINES), 0)

    _connect(site.folder, "main", f"rocketmq: {{name_servers: {site.name_servers}}}\n")
    site.waybill("run", "copy")
    assert b"\n".join(site.messages()) + b"\n" == b"".join(LINES) + b"later\n"
