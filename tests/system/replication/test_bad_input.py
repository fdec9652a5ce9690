"""Files as they come: what becomes of odd lines, and what is said when a record or a server is not as it should be."""

from __future__ import annotations

import pytest

from tests.site import Site

pytestmark = pytest.mark.server

MEGABYTE = 1024 * 1024


def _lines_in(site: Site, content: bytes, *, binary: bool = False, **errors: object) -> None:
    (site.folder / "logs").mkdir()
    (site.folder / "logs" / "odd.log").write_bytes(content)
    document = {
        "source": {"file": {"path": "logs/*.log", "binary": binary}},
        "sink": {"rocketmq": {"connection": "main", "topic": site.topic, "queues": 1}},
    }
    site.apply("odd", {**document, **({"errors": errors} if errors else {})})


def test_odd_lines_arrive_as_they_are(site: Site) -> None:
    """Empty lines, bytes that are no UTF-8, a carriage return before the line feed; the unterminated end waits."""
    _lines_in(
        site,
        b"\nplain\n\xff\xfe\x00\n" + "naïve – 漢字\n".encode() + b"windows\r\n\n" + b"x" * MEGABYTE + b"\nnot yet",
        binary=True,
    )
    site.waybill("run", "odd")
    expected = [b"", b"plain", b"\xff\xfe\x00", "naïve – 漢字".encode(), b"windows", b"", b"x" * MEGABYTE]
    assert site.messages() == expected
    with (site.folder / "logs" / "odd.log").open("ab") as file:
        file.write(b", but now\n")
    site.waybill("run", "odd")
    assert site.messages() == [*expected, b"not yet, but now"]


def test_an_empty_file_is_nothing_to_move(site: Site) -> None:
    _lines_in(site, b"")
    assert "nothing to move" in site.waybill("run", "odd")
    assert site.json("receipts", "odd")["receipts"] == []


def test_a_line_longer_than_a_message_stops_the_run_before_it(site: Site) -> None:
    _lines_in(site, b"before\n" + b"x" * (5 * MEGABYTE) + b"\nbehind\n")
    said = site.waybill("run", "odd", code=5)
    assert "odd.log, offset 7" in said
    assert "errors.tolerance" in said
    assert "xxx" not in said
    assert site.messages() == [b"before"]
    (receipt,) = site.json("receipts", "odd")["receipts"]
    assert (receipt["begin"], receipt["end"], receipt["rejected"]) == (0, 7, 0)


def test_a_tolerated_line_becomes_a_dead_letter(site: Site) -> None:
    _lines_in(site, b"before\n" + b"x" * (5 * MEGABYTE) + b"\nbehind\n", tolerance="all")
    site.waybill("run", "odd")
    assert site.messages() == [b"before", b"behind"]
    (letter,) = site.json("dead-letters", "list", "odd")["dead_letters"]
    assert letter["offset"] == 7
    (receipt,) = site.json("receipts", "odd")["receipts"]
    assert (receipt["read"], receipt["rejected"], receipt["delivered"]) == (3, 1, 2)


def test_a_name_server_that_does_not_answer(site: Site) -> None:
    _lines_in(site, b"line\n")
    site.apply(
        "nowhere",
        {
            "source": {"file": {"path": "logs/*.log"}},
            "sink": {"rocketmq": {"name_servers": "127.0.0.1:1", "topic": site.topic}},
        },
    )
    said = site.waybill("run", "nowhere", code=3)
    assert "127.0.0.1:1" in said
    assert "Traceback" not in said
    assert [one["offset"] for one in site.json("offsets", "show", "nowhere")["offsets"]] == [0]
