"""file -> RocketMQ -> file with the command, a real broker, real Spark and PostgreSQL, whole and appended to.

Every test ends with the same question: is each line there once, in its order, and do the receipts say so.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.site import Site

pytestmark = pytest.mark.server

FILES, LINES = 3, 20_000


def _feed(folder: Path, begin: int, end: int) -> None:
    """Appends numbered lines to each log file; every line says where it belongs."""
    for number in range(FILES):
        with (folder / f"log-{number}.log").open("ab") as file:
            file.write(b"".join(b"file %d line %07d %s\n" % (number, n, b"x" * 80) for n in range(begin, end)))


def _lines(path: Path) -> list[bytes]:
    return path.read_bytes().split(b"\n")[:-1]


def _source_lines(site: Site) -> list[bytes]:
    return [line for number in range(FILES) for line in _lines(site.folder / "logs" / f"log-{number}.log")]


def _check(delivered: list[bytes], fed: list[bytes]) -> None:
    """Each line once, and the lines of one file in their order."""
    assert sorted(delivered) == sorted(fed)
    for number in range(FILES):
        mine = [line for line in delivered if line.startswith(b"file %d " % number)]
        assert mine == sorted(mine)


def _check_receipts(site: Site, connector: str, records: int) -> list[dict]:  # type: ignore[type-arg]
    receipts = site.json("receipts", connector)["receipts"]
    for receipt in receipts:
        assert receipt["read"] == receipt["filtered"] + receipt["rejected"] + receipt["passed"]
        assert receipt["emitted"] == receipt["delivered"] + receipt["deduplicated"]
        assert receipt["duplicates"] == 0
    assert sum(receipt["passed"] for receipt in receipts) == records
    return receipts


@pytest.fixture
def lines_in(site: Site) -> str:
    (site.folder / "logs").mkdir()
    _feed(site.folder / "logs", 0, LINES)
    site.apply(
        "lines-in",
        {
            "source": {"file": {"path": "logs/*.log"}},
            "sink": {"rocketmq": {"name_servers": "${stack:name_servers}", "topic": site.topic, "queues": 4}},
        },
    )
    return "lines-in"


@pytest.fixture
def lines_out(site: Site, lines_in: str) -> str:
    site.waybill("run", lines_in)
    site.apply(
        "lines-out",
        {
            "source": {"rocketmq": {"name_servers": "${stack:name_servers}", "topics": [site.topic]}},
            "sink": {"file": {"path": "out/lines.log"}},
        },
    )
    (site.folder / "out").mkdir()
    return "lines-out"


def test_both_ways_while_lines_are_appended(site: Site, lines_in: str) -> None:
    site.waybill("run", lines_in)
    _feed(site.folder / "logs", LINES, LINES + 500)
    site.waybill("run", lines_in)
    fed = _source_lines(site)
    _check(site.messages(), fed)
    _check_receipts(site, lines_in, len(fed))


def test_out_to_a_file(site: Site, lines_out: str) -> None:
    site.waybill("run", lines_out)
    fed = _source_lines(site)
    _check(_lines(site.folder / "out" / "lines.log"), fed)
    _check_receipts(site, lines_out, len(fed))
    (lag,) = site.json("lag", lines_out)["connectors"]
    assert lag["lag"] == 0
