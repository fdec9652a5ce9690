"""Lines of CSV in a file: what ends a line, also between quotation marks, is no part of one there."""

from __future__ import annotations

import csv

from tests.site import Site


def test_a_text_that_ends_a_line_is_rejected_and_the_others_are_whole_lines(bare_site: Site) -> None:
    site = bare_site
    (site.folder / "in.log").write_text(
        '{"a":"x\\ny","b":1}\n{"a":"p,\\"q","b":2}\n{"a":"r\\rs","b":3}\n{"a":"","b":4}\n'
    )
    site.apply(
        "lines",
        {
            "source": {"file": {"path": str(site.folder / "in.log")}},
            "sink": {"file": {"path": str(site.folder / "out.csv")}},
            "parse": {"format": "json", "fields": {"a": "text", "b": "int64"}},
            "encode": {"format": "csv"},
            "errors": {"tolerance": "all"},
        },
    )
    site.waybill("run", "lines", "--engine", "inline")
    written = (site.folder / "out.csv").read_bytes()
    assert list(csv.reader(written.decode().split("\n")[:-1], strict=True)) == [['p,"q', "2"], ["r\rs", "3"], ["", "4"]]
    [letter] = site.json("dead-letters", "list", "lines")["dead_letters"]
    assert letter["offset"] == 0
    assert "line" in letter["message"]
