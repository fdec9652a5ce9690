"""`unknown: evolve`: what is shown of it, and what becomes of fields that runs have added when a file is applied."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from connect_core.ledger import Ledger
from connect_core.service import inferred_fields
from tests.unit.cli.conftest import Waybill

DOCUMENT = """\
version: 1
name: a
source: {file: {path: logs/a.log}}
sink: {file: {path: out/a.txt}}
engine: inline
parse: {format: json, fields: {id: int32, who: text}, unknown: evolve}
encode: {format: json}
errors: {tolerance: all}
"""
LINES = '{"id":1,"who":"ann"}\n{"id":3000000000,"late":true}\n'
EVOLVED = {"id": "int64", "who": "text", "late": "bool"}


@pytest.fixture
def evolved(waybill: Waybill, folder: Path) -> None:
    (folder / "logs" / "a.log").write_text(LINES)
    (folder / "a.yaml").write_text(DOCUMENT)
    assert waybill("apply", "a.yaml").code == 0
    assert waybill("run", "a").code == 0


def written(folder: Path, old: str, new: str) -> None:
    assert old in DOCUMENT
    (folder / "a.yaml").write_text(DOCUMENT.replace(old, new))


def parse(waybill: Waybill) -> dict[str, Any]:
    found: dict[str, Any] = waybill("connectors", "show", "a", "--json").json["document"]["parse"]
    return found


@pytest.mark.usefixtures("evolved")
def test_the_run_says_what_it_has_added_and_so_do_its_revision_and_the_plan(waybill: Waybill, folder: Path) -> None:
    assert parse(waybill)["fields"] == EVOLVED
    shown = waybill("connectors", "show", "a", "--revisions").out
    [run] = {one["run"] for one in waybill("receipts", "a", "--json").json["receipts"][-1:]}
    assert f"by run {run}" in shown
    assert "a record needed id: int64, late: bool: partition " in shown
    assert 'parse.fields.late: added "bool"' in shown
    planned = waybill("plan", "a").out.splitlines()
    assert "fields: {id: int64, who: text, late: bool}" in planned
    assert "  declared in the document; runs have added or widened id: int64, late: bool" in planned
    assert "contract: evolve" in planned
    assert "  - so come at most 50 fields until the document is applied with them" in planned


@pytest.mark.usefixtures("evolved")
def test_a_file_with_fields_of_before_narrows_nothing(waybill: Waybill, folder: Path) -> None:
    again = waybill("apply", "a.yaml")
    assert again.out == "a: unchanged\n"
    assert "runs have added or widened id: int64, late: bool, and these are kept" in again.err
    written(folder, "tolerance: all", "tolerance: 7")
    assert waybill("apply", "a.yaml").code == 0
    assert parse(waybill)["fields"] == EVOLVED


@pytest.mark.usefixtures("evolved")
def test_what_a_person_writes_is_declared_and_counts_no_more(waybill: Waybill, folder: Path) -> None:
    written(folder, "who: text}", "who: text, late: bool}")
    assert "- parse.evolved.late: bool" in waybill("apply", "a.yaml").out
    assert parse(waybill)["evolved"] == {"id": "int64"}
    written(folder, "{id: int32, who: text}", "{id: int64, late: text}")
    typed = waybill("apply", "a.yaml")
    assert "~ parse.fields.late: bool -> text" in typed.out, "a person may say otherwise"
    assert "evolved" not in parse(waybill)


@pytest.mark.usefixtures("evolved")
def test_another_contract_has_the_fields_of_the_file_and_shows_what_goes(waybill: Waybill, folder: Path) -> None:
    written(folder, "evolve", "reject")
    typed = waybill("apply", "a.yaml")
    assert "  - parse.fields.late: bool" in typed.out.splitlines()
    assert "  ~ parse.fields.id: int64 -> int32" in typed.out.splitlines()


@pytest.mark.usefixtures("evolved")
def test_a_run_that_evolves_while_the_file_is_applied_is_not_undone(
    waybill: Waybill, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = inferred_fields.check_together

    def slowly(*given: Any, **more: Any) -> Any:
        checked = checks(*given, **more)
        with Ledger.open(f"sqlite:///{folder}/.waybill/ledger.db") as ledger:
            found = ledger.connector("a")
            parsed = found.document["parse"]
            evolved = {"fields": parsed["fields"] | {"new": "text"}, "evolved": parsed["evolved"] | {"new": "text"}}
            ledger.apply("a", found.document | {"parse": parsed | evolved}, who="run")
        return checked

    monkeypatch.setattr("connect_core.service.inferred_fields.check_together", slowly)
    typed = waybill("apply", "a.yaml")
    assert (typed.code, typed.out) == (0, "a: unchanged\n")
    assert parse(waybill)["fields"]["new"] == "text"


def test_inferred_fields_evolve_and_are_kept(waybill: Waybill, folder: Path) -> None:
    (folder / "logs" / "a.log").write_text('{"id":1}\n')
    written(folder, "{id: int32, who: text}", "infer")
    waybill("apply", "a.yaml")
    with (folder / "logs" / "a.log").open("a") as file:
        file.write('{"id":2,"late":true}\n')
    waybill("run", "a")
    assert parse(waybill)["fields"] == {"id": "int64", "late": "bool"}
    again = waybill("apply", "a.yaml")
    assert again.out == "a: unchanged\n"
    assert parse(waybill)["evolved"] == {"late": "bool"}
    waybill("apply", "a.yaml", "--infer-again", "--yes")
    assert "evolved" not in parse(waybill), "a person has looked"


@pytest.mark.parametrize(
    ("format", "why"),
    [
        ("json-schema", "each payload has its own schema: a field that is new there is to be declared"),
        ("debezium", "a change event is about a row of a table, whose fields are to be declared as the table has them"),
        ("avro", "which fields there are is said by the schema, in the document or in a registry: change it there"),
        ("protobuf", "which fields there are is said by the schema, in the document or in a registry: change it there"),
        ("cloudevents", "the attributes of an event are those of its specification, and data is to be declared"),
    ],
)
def test_formats_with_a_schema_do_not_evolve(waybill: Waybill, folder: Path, format: str, why: str) -> None:
    written(folder, "format: json, fields", f"format: {format}, fields")
    typed = waybill("check", "a.yaml")
    assert typed.code == 2
    assert f"unknown: evolve goes with format json; {why}" in typed.err


def test_evolve_needs_fields_to_begin_with(waybill: Waybill, folder: Path) -> None:
    written(folder, "fields: {id: int32, who: text}, ", "")
    assert "unknown goes with fields" in waybill("check", "a.yaml").err


def test_what_the_document_does_not_take_is_rejected_and_says_why(waybill: Waybill, folder: Path) -> None:
    (folder / "logs" / "a.log").write_text(LINES + '{"id":1,"o":{"x":1}}\n')
    written(folder, "encode: {format: json}", "encode: {format: csv}")
    waybill("apply", "a.yaml")
    ran = waybill("run", "a")
    assert "fields: o.x: int64 is refused, and records that need it are rejected: " in ran.err
    [letter] = waybill("dead-letters", "list", "a", "--json").json["dead_letters"]
    assert letter["message"].startswith("Not of format json: a field that is not declared: ")
    assert "o is an object: flatten it, or drop it: a cell of csv has one value. Make room, " in letter["message"]
    assert (folder / "out" / "a.txt").read_text() == "1,ann\n3000000000,,true\n"
