"""`waybill trace --when`: records of a source are found by what they say, within a window and limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from connect_core.replication.backfill import searching
from tests.unit.cli.conftest import DOCUMENT, Waybill

ALL = ("--range", "a.log:-")
LINES = [f'{{"order":{number},"who":"n{number}"}}\n' for number in range(10)]


@pytest.fixture
def orders(applied: Path, waybill: Waybill) -> Path:
    """A log of ten lines, of which the connector `copy` has read those that were there before the last one."""
    log = applied / "logs" / "a.log"
    log.write_text("".join(LINES[:9]))
    assert waybill("run", "copy", "--engine", "inline").code == 0
    with log.open("a") as file:
        file.write(LINES[9])
    return log


def changed(folder: Path, waybill: Waybill, more: str) -> None:
    (folder / "copy.yaml").write_text(DOCUMENT.format(name="copy") + more)
    assert waybill("apply", "copy.yaml").code == 0


def found(waybill: Waybill, condition: str, *window: str) -> tuple[list[int], Any]:
    told = waybill("trace", "copy", "--when", condition, *(window or ALL), "--json").json
    return [one["offset"] for one in told["records"]], told


def place(number: int) -> int:
    return sum(map(len, LINES[:number]))


def test_a_line_is_found_by_a_field_and_followed(orders: Path, waybill: Waybill) -> None:
    offsets, told = found(waybill, "$.order = 4")
    assert offsets == [place(4)]
    [settled] = told["records"][0]["ranges"]
    assert settled["state"] == "settled"
    assert told["searched"] == {"read": 10, "rest": [], "notices": []}
    shown = waybill("trace", "copy", "--when", "$.order = 9", *ALL).out
    assert shown == (
        f"{orders}:{place(9)}\n  It was not read yet: the next run begins at {place(9)}\n1 record found in 10 read\n"
    )


def test_a_line_is_found_by_its_text_and_only_in_the_window(orders: Path, waybill: Waybill) -> None:
    text = "payload:text CONTAINS '\"n8\"'"
    assert found(waybill, text)[0] == [place(8)]
    assert found(waybill, text, "--range", f"a.log:{place(8)}-{place(9)}")[0] == [place(8)]
    offsets, told = found(waybill, text, "--range", f"a.log:0-{place(8)}")
    assert (offsets, told["searched"]["read"]) == ([], 8)
    typed = waybill("trace", "copy", "--when", text, "--range", f"a.log:0-{place(8)}")
    assert (typed.code, typed.out) == (0, "0 records found in 8 read\n")
    offsets, told = found(waybill, text, "--range", "a.log:1-")
    assert "where records begin" in told["searched"]["notices"][0]


@pytest.mark.parametrize(
    ("limit", "value", "places", "left"), [("MAX_FOUND", 3, [0, 1, 2], 3), ("MAX_RECORDS", 4, [0, 1, 2, 3], 4)]
)
def test_what_a_limit_leaves_is_said_and_can_be_searched_next(
    orders: Path,
    waybill: Waybill,
    monkeypatch: pytest.MonkeyPatch,
    limit: str,
    value: int,
    places: list[int],
    left: int,
) -> None:
    monkeypatch.setattr(searching, limit, value)
    offsets, told = found(waybill, "$.order >= 0")
    assert offsets == [place(number) for number in places]
    [rest] = told["searched"]["rest"]
    partition, _, span = rest.rpartition(":")
    assert (partition, span.endswith(f"-{place(10)}")) == (str(orders), True)
    assert place(left - 1) < int(span.partition("-")[0]) <= place(left)
    assert f"not searched: --range {rest}" in waybill("trace", "copy", "--when", "$.order >= 0", *ALL).out
    assert found(waybill, "$.order >= 0", "--range", rest)[0][0] == place(left)


def test_after_its_time_nothing_more_is_read(orders: Path, waybill: Waybill, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "MAX_S", 0.0)
    offsets, told = found(waybill, "$.order >= 0")
    assert (offsets, told["searched"]["read"]) == ([], 0)
    assert told["searched"]["rest"] == [f"{orders}:0-{place(10)}"]


def test_a_record_that_the_document_rejects_is_found_as_well(orders: Path, waybill: Waybill, folder: Path) -> None:
    changed(folder, waybill, "parse: {format: json, fields: {other: text}}\nerrors: {tolerance: all}\n")
    assert waybill("run", "copy", "--engine", "inline").code == 0
    offsets, told = found(waybill, "$.order = 9")
    assert offsets == [place(9)]
    assert told["records"][0]["ranges"][0]["state"] == "rejected"


def test_fields_of_other_formats(orders: Path, waybill: Waybill, folder: Path) -> None:
    changed(folder, waybill, "parse: {format: csv, columns: [id, name]}\nerrors: {tolerance: all}\n")
    orders.write_text("1,ann\n2,bob\nthree\n")
    assert found(waybill, "$.name = 'bob'")[0] == [6]
    assert found(waybill, "payload:text = 'three'")[0] == [12], "it is not of the format"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--when", "$.order = 1"), "give either --range PARTITION:BEGIN-END, or --from"),
        (("--when", "$.order = 1", *ALL, "--from", "2h"), "give either --range PARTITION:BEGIN-END, or --from"),
        (("--when", "$.order = 1", "--from", "2h"), "A file does not say when its lines were written"),
        (("--when", "$.order = 1", "--from", "soon"), "'soon' is not a time"),
        (("--when", "$.order = 1", "--to", "2h"), "--to alone does not say where to start"),
        (("--when", "$.order = 1", "--range", "a.log"), "'a.log' is not PARTITION:BEGIN-END"),
        (("--when", "$.order = 1", "--range", "nowhere:-"), "there is no partition 'nowhere'"),
        (("--when", "$.order =", *ALL), "when: is not a condition"),
        (("--when", "order = 1", *ALL), "did you mean $.order?"),
        (("--source-key", "4711"), "The source of copy has no index of keys. Search a window of the source: --when"),
        (("--source-key", "4711", *ALL), "--range, --from and --to go with --when"),
        (
            ("--when", "$.order = 1", "--key", "k"),
            "Name one record. Give one of --source, --target, --key, --source-key",
        ),
    ],
)
def test_what_cannot_be_searched(orders: Path, waybill: Waybill, words: tuple[str, ...], told: str) -> None:
    typed = waybill("trace", "copy", *words)
    assert (typed.code, typed.out) == (2, "")
    assert told in typed.err


def test_a_source_that_pushes_is_not_searched(waybill: Waybill, applied: Path) -> None:
    text = DOCUMENT.format(name="pushed").replace("file: {path: logs/*.log}", "mqtt: {host: localhost, filters: [x]}")
    (applied / "pushed.yaml").write_text(text)
    assert waybill("apply", "pushed.yaml").code == 0
    typed = waybill("trace", "pushed", "--when", "$.order = 1", "--from", "2h")
    assert typed.code == 2
    assert "The source of pushed gives nobody a record again that was acknowledged" in typed.err
