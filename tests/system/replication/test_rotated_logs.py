"""Logs that were rotated away before a window begins, and others beside them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.kit.processes import ended, wait_for
from tests.faults.kit.writers import beside
from tests.site import Site

pytestmark = pytest.mark.usefixtures("warm_lanes")

LINE = b"calm\n"


def rotate(logs: Path, number: int) -> None:
    """As logrotate does, with three lines in each file."""
    for older in range(number, 0, -1):
        (logs / f"busy.log.{older}").rename(logs / f"busy.log.{older + 1}")
    (logs / "busy.log").rename(logs / "busy.log.1")
    (logs / "busy.log").write_bytes(b"".join(b"%d %d\n" % (number, line) for line in range(3)))


@pytest.mark.parametrize(("rotated", "quiet"), [(40, True), (6, False)], ids=["quiet", "just now"])
def test_what_comes_to_a_log_does_not_wait_for_another_that_catches_up(
    bare_site: Site, *, rotated: int, quiet: bool
) -> None:
    """Of files that count as quiet it is known when the run begins that they have ended. Of those that were rotated
    away just now it is seen in the window."""
    site, out = bare_site, bare_site.folder / "out.txt"
    site.settings |= {"WAYBILL_QUANTUM_S": "10s", "WAYBILL_LEASE_TTL_S": "40s"}
    logs = site.folder / "logs"
    logs.mkdir()
    for name in ("busy", "calm"):
        (logs / f"{name}.log").write_bytes(b"first\n")
    source = {"path": "logs/*.log", **({"rotation_quiet_s": 0} if quiet else {})}
    site.apply("in", {"source": {"file": source}, "sink": {"file": {"path": "out.txt"}}})
    site.waybill("run", "in", "--engine", "inline")
    for number in range(rotated):
        rotate(logs, number)
    last = b"%d 2\n" % (rotated - 1)
    with (logs / "calm.log").open("ab", buffering=0) as calm, beside(lambda: calm.write(LINE), 0.01):
        staying = site.start("run", "in", "--engine", "inline", "--window", "2m")
        wait_for(lambda: last in out.read_bytes(), "the last of the rotated files")
    site.waybill("connectors", "pause", "in")
    assert ended(staying) == 0
    came = out.read_bytes()
    lines = [line for line in came.splitlines(keepends=True) if line not in (LINE, b"first\n")]
    assert lines == [b"%d %d\n" % (number, line) for number in range(rotated) for line in range(3)]
    between = came[came.index(b"2 0\n") : came.index(last)]
    assert LINE in between
    assert max(map(len, between.split(b" 0\n"))) < 500 * len(LINE)
