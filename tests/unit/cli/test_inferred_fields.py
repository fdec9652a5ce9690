"""`fields: infer`: found when a document is applied, stored, and never guessed a second time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from connect_core.errors import ConfigError
from connect_core.ledger import Ledger
from connect_core.service import inferred_fields
from tests.unit.cli.conftest import Waybill

INFERS = """\
version: 1
name: {name}
source: {{file: {{path: logs/{name}.log}}}}
sink: {{file: {{path: out/{name}.txt}}}}
engine: inline
parse: {{format: json, fields: infer}}
transforms: [{{rename: {{id: number}}}}]
errors: {{tolerance: all}}
"""
FIELDS = {"id": "int64", "who": "text"}
ONE, OTHER = '{"id":1,"who":"ann"}\n', '{"id":2,"who":"bob","late":true}\n'


@pytest.fixture
def document(folder: Path) -> str:
    (folder / "logs" / "a.log").write_text(ONE)
    return written(folder, "a")


def written(folder: Path, name: str, **changes: str) -> str:
    text = INFERS.format(name=name)
    for old, new in changes.items():
        text = text.replace(old, new)
    (folder / f"{name}.yaml").write_text(text)
    return f"{name}.yaml"


def append(folder: Path, line: str) -> None:
    with (folder / "logs" / "a.log").open("a") as file:
        file.write(line)


def stored(waybill: Waybill, name: str = "a") -> dict[str, Any]:
    parse: dict[str, Any] = waybill("connectors", "show", name, "--json").json["document"]["parse"]
    return parse


def test_apply_finds_the_fields_and_stores_them_with_where_they_are_from(waybill: Waybill, document: str) -> None:
    typed = waybill("apply", document)
    assert "+ parse.fields.who: text" in typed.out
    parse = stored(waybill)
    assert parse["fields"] == FIELDS
    assert parse["inferred"].keys() == {"at", "records"}
    assert parse["inferred"]["records"] == 1
    assert waybill("run", "a").code == 0
    assert Path("out/a.txt").read_text() == '{"number":1,"who":"ann"}\n'


def test_a_document_that_is_applied_again_keeps_them(waybill: Waybill, document: str, folder: Path) -> None:
    waybill("apply", document)
    before = stored(waybill)
    append(folder, OTHER)
    again = waybill("apply", document)
    assert again.out == "a: unchanged\n"
    assert "from 1 record, and kept" in again.err
    written(folder, "a", rename="drop", **{"{id: number}": "[who]"})
    assert "changed" in waybill("apply", document).out
    assert stored(waybill) == before
    (folder / "logs" / "a.log").unlink()
    assert waybill("apply", document).code == 0, "nothing is asked"


def test_only_a_person_has_them_found_again_and_sees_the_difference_before(
    waybill: Waybill, document: str, folder: Path
) -> None:
    waybill("apply", document)
    same = waybill("apply", document, "--infer-again")
    assert same.out == "a: unchanged\n", "the same fields are no change, so nobody is asked"
    append(folder, OTHER)
    dry = waybill("apply", document, "--infer-again", "--dry-run")
    assert "  + parse.fields.late: bool" in dry.out.splitlines()
    refused = waybill("apply", document, "--infer-again")
    assert refused.code == 2
    assert "a: + parse.fields.late: bool" in refused.err.splitlines()
    assert "Nothing was changed. Add --yes" in refused.err
    assert stored(waybill)["fields"] == FIELDS
    assert waybill("apply", document, "--infer-again", "--yes").code == 0
    assert stored(waybill)["fields"] == FIELDS | {"late": "bool"}


def test_infer_again_is_for_documents_that_infer(waybill: Waybill, document: str, folder: Path) -> None:
    written(folder, "a", infer="{id: int64}")
    typed = waybill("apply", document, "--infer-again")
    assert typed.code == 2
    assert "No document infers its fields" in typed.err


def test_dry_runs_and_checks_write_nothing(waybill: Waybill, document: str, folder: Path) -> None:
    shown = waybill("apply", document, "--dry-run")
    assert "  + parse.fields.id: int64" in shown.out.splitlines()
    checked = waybill("check", document)
    assert "note: parse.fields: `apply` finds them in the source" in checked.out
    assert "fields: {" not in checked.out, "a check contacts nobody"
    assert "  fields: {id: int64, who: text}" in waybill("check", document, "--probe").out.splitlines()
    assert not (folder / ".waybill").exists()


def test_check_knows_the_stored_fields(waybill: Waybill, document: str, folder: Path) -> None:
    waybill("apply", document)
    written(folder, "a", **{"{id: number}": "{ide: number}"})
    assert "rename: no field ide; did you mean id?" in waybill("check", document).err


def test_apply_judges_what_names_a_field_by_those_that_it_found(waybill: Waybill, document: str, folder: Path) -> None:
    written(folder, "a", **{"{id: number}": "{ide: number}"})
    typed = waybill("apply", document)
    assert typed.code == 2
    assert "line 7: rename: no field ide; did you mean id?" in typed.err
    assert not (folder / ".waybill").exists()


def test_a_source_in_which_nothing_can_be_found_applies_no_document(waybill: Waybill, folder: Path) -> None:
    (folder / "logs" / "a.log").write_text(ONE)
    (folder / "logs" / "empty.log").write_text("")
    (folder / "logs" / "text.log").write_text("one\n[1]\n")
    documents = [written(folder, name) for name in ("a", "empty", "text")]
    typed = waybill("apply", *documents)
    assert typed.code == 2
    assert "empty.yaml: parse.fields: The source has no record. Apply the document when there are some" in typed.err
    assert "text.yaml: parse.fields: None of the newest 2 records is a JSON object" in typed.err
    assert not (folder / ".waybill").exists()


def test_a_folder_of_documents_finds_those_of_each(waybill: Waybill, folder: Path) -> None:
    (folder / "documents").mkdir()
    for name, line in (("a", ONE), ("b", '{"id":1.5}\n')):
        (folder / "logs" / f"{name}.log").write_text(line)
        (folder / "documents" / f"{name}.yaml").write_text(INFERS.format(name=name))
    assert waybill("apply", "documents").code == 0
    assert [stored(waybill, name)["fields"] for name in ("a", "b")] == [FIELDS, {"id": "float64"}]


def test_a_source_that_cannot_be_looked_at(waybill: Waybill, folder: Path) -> None:
    path = written(folder, "a", **{"{file: {path: logs/a.log}}": "{mqtt: {host: localhost, filters: [x]}}"})
    typed = waybill("apply", path)
    assert typed.code == 2
    assert "Records of mqtt cannot be shown without taking them from it. Write the fields" in typed.err


def test_a_log_that_was_rotated_a_moment_ago_is_looked_for_in_the_one_before(waybill: Waybill, folder: Path) -> None:
    path = written(folder, "a", **{"logs/a.log": "logs/r*"})
    (folder / "logs" / "r.1").write_text(ONE)
    (folder / "logs" / "r").write_text("")
    assert waybill("apply", path).code == 0
    assert stored(waybill)["fields"] == FIELDS


def test_the_filter_says_which_records_are_looked_at(waybill: Waybill, folder: Path) -> None:
    """Its condition is asked of what was parsed: a record that is not of the fields is rejected before."""
    (folder / "logs" / "a.log").write_text(ONE + '{"id":"x"}\n')
    path = written(folder, "a", **{"errors:": "filter: {when: $.id = 1}\nerrors:"})
    assert "of several types" in waybill("apply", path).err
    path = written(folder, "a", **{"errors:": "filter: {tags: [no]}\nerrors:"})
    assert "names the tags" in waybill("apply", path).err


def test_fields_that_a_person_writes_are_no_longer_inferred(waybill: Waybill, document: str, folder: Path) -> None:
    waybill("apply", document)
    written(folder, "a", infer="{id: int64}")
    waybill("apply", document)
    assert stored(waybill) == {"format": "json", "fields": {"id": "int64"}}


def test_a_document_as_it_is_shown_can_be_applied(waybill: Waybill, document: str) -> None:
    import yaml

    waybill("apply", document)
    told = waybill("connectors", "show", "a", "--json").json["document"]
    Path(document).write_text(yaml.safe_dump(told))
    assert waybill("apply", document).out == "a: unchanged\n"


def test_two_that_apply_at_the_same_moment_do_not_guess_twice(
    waybill: Waybill, document: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = inferred_fields._now

    def other_is_faster() -> str:
        monkeypatch.setattr(inferred_fields, "_now", now)
        assert waybill("apply", document).code == 0
        append(folder, OTHER)
        return "2026-01-01T00:00:00+00:00"

    monkeypatch.setattr(inferred_fields, "_now", other_is_faster)
    late = waybill("apply", document)
    assert late.code == 0, "it looks again, and finds what is stored"
    assert "and kept" in late.err
    assert stored(waybill)["inferred"]["at"] > "2026-01-01T00:00:00+00:00"


def test_try_uses_the_fields_that_are_stored(waybill: Waybill, document: str, folder: Path) -> None:
    assert '-> {"number":1,"who":"ann"}' in waybill("try", document).out
    waybill("apply", document)
    append(folder, OTHER)
    assert "a field that is not declared" in waybill("try", document).out


@pytest.mark.parametrize(
    ("parse", "errors", "words"),
    [
        (
            "{format: json, fields: {id: int64, at: {x: text}}}",
            "all",
            [
                "fields: {id: int64, at: {x: text}}",
                "  declared in the document",
                "contract: freeze",
                "  - a record with another field, or with a value of another type, is rejected: it becomes a dead"
                " letter",
                "  - a field that a record lacks is null",
            ],
        ),
        (
            "{format: json, fields: {id: int64}, unknown: drop}",
            "5",
            [
                "fields: {id: int64}",
                "  declared in the document",
                "contract: discard_field",
                "  - a field that is not listed is left out (parse.unknown: drop)",
                "  - a record with a value of another type is rejected: it becomes a dead letter; more than 5 in a run"
                " stop its partition",
                "  - a field that a record lacks is null",
            ],
        ),
        (
            "{format: csv, columns: [id, name]}",
            "none",
            [
                "fields: {id: text, name: text}",
                "  named by format csv",
                "contract: freeze",
                "  - a record that is not of format csv is rejected: it stops its partition (errors.tolerance: none)",
            ],
        ),
        ("{format: json}", "all", []),
    ],
)
def test_plan_and_show_say_the_contract(
    waybill: Waybill, folder: Path, parse: str, errors: str, words: list[str]
) -> None:
    (folder / "logs" / "a.log").write_text(ONE)
    path = written(
        folder,
        "a",
        **{
            "{format: json, fields: infer}": parse,
            "tolerance: all": f"tolerance: {errors}",
            "transforms: [{rename: {id: number}}]\n": "",
        },
    )
    assert waybill("apply", path).code == 0
    for command in (("plan", "a"), ("connectors", "show", "a")):
        out = waybill(*command).out
        assert "\n".join(words) in out
        assert ("contract" in out) == bool(words)


def test_plan_says_when_the_fields_were_inferred_and_from_what(waybill: Waybill, document: str, folder: Path) -> None:
    append(folder, "no object\n")
    waybill("apply", document)
    told = waybill("plan", "a", "--json").json["schema"]
    assert (told["fields"], told["origin"], told["contract"]) == (FIELDS, "inferred", "freeze")
    assert told["from"].endswith("UTC from 1 record, beside 1 that was no JSON object")
    assert f"  {told['from']}" in waybill("plan", "a").out.splitlines()


def test_a_run_refuses_a_document_whose_fields_were_not_found(waybill: Waybill, document: str, folder: Path) -> None:
    waybill("apply", document)
    with Ledger.open(f"sqlite:///{folder}/.waybill/ledger.db") as ledger:
        connector = ledger.connector("a")
        ledger.apply("a", connector.document | {"parse": {"format": "json", "fields": "infer"}}, who="ann")
    for command in ("run", "plan"):
        typed = waybill(command, "a")
        assert typed.code == ConfigError.exit_code
        assert (
            "The fields that it infers were not found yet [connector a: parse]. Apply its document again" in typed.err
        )
