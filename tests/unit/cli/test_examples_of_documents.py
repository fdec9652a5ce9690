"""Documents with examples, with the command as typed. No servers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.conftest import DOCUMENT, Waybill

ERRORS = """\
parse: {format: logfmt}
rules:
- {name: errors, when: "$.level = 'error'", keys: "{$.host}"}
examples:
- record: {payload: 'level=error host=a msg="disk full"', path: logs/a.log}
  becomes: {key: a}
- record: {payload: level=info host=a}
  filtered: true
- name: a bad quote
  record: {payload: 'level="error'}
  rejected: parse
"""


def _write(folder: Path, rest: str = ERRORS) -> None:
    (folder / "copy.yaml").write_text(DOCUMENT.format(name="copy") + rest)


def test_check_tells_how_many_hold_and_writes_nothing(waybill: Waybill, folder: Path) -> None:
    _write(folder)
    typed = waybill("check", "copy.yaml")
    assert (typed.code, typed.err) == (0, "")
    assert typed.out.splitlines()[:2] == ["copy.yaml: copy is valid", "  3 examples hold"]
    assert waybill("check", "copy.yaml", "--json").json["documents"][0]["examples"] == 3
    _write(folder, "examples: [{record: {payload: a}, becomes: {}}]\n")
    assert "  1 example holds\n" in waybill("check", "copy.yaml").out
    _write(folder, "")
    assert "example" not in waybill("check", "copy.yaml").out
    assert not (folder / ".waybill").exists()


@pytest.mark.parametrize("words", [("check",), ("apply",), ("apply", "--dry-run")])
def test_an_example_that_does_not_hold_is_a_fault(words: tuple[str, ...], waybill: Waybill, folder: Path) -> None:
    _write(folder, ERRORS.replace("{key: a}", "{key: b}").replace("level=info", "level=error"))
    typed = waybill(*words, "copy.yaml")
    assert (typed.code, typed.out) == (2, "")
    assert typed.err == (
        "Error: 2 faults in 1 document\n"
        "  copy.yaml: examples.0.becomes.key: line 10: expected 'b'; the output has 'a'\n"
        "  copy.yaml: examples.1.filtered: line 12: expected to be filtered; the record becomes 1 output: key 'a'\n"
    )
    assert not (folder / ".waybill").exists()


def test_a_rule_that_breaks_an_example_is_changed_and_says_so(waybill: Waybill, folder: Path) -> None:
    _write(folder)
    assert waybill("apply", "copy.yaml").code == 0
    assert waybill("rules", "set", "copy", "errors", "--keys", "{$.host}").code == 0
    typed = waybill("rules", "set", "copy", "errors", "--tags", "t", "--keys", "{$.level}")
    assert typed.code == 0
    assert "copy: examples.0.becomes.key does not hold: " in typed.err
    assert "expected 'a'; the output has 'error'" in typed.err
    assert waybill("rules", "list", "copy", "--json").json["rules"][0]["keys"] == "{$.level}"


def test_examples_alone_change_nothing_of_what_runs_do(waybill: Waybill, folder: Path) -> None:
    _write(folder, ERRORS.partition("examples:")[0] + "errors: {tolerance: all}\n")
    (folder / "logs" / "a.log").write_text("level=error host=a\nlevel=info\n")
    assert waybill("apply", "copy.yaml").code == 0
    assert waybill("run", "copy", "--engine", "inline").code == 0
    _write(folder, ERRORS + "errors: {tolerance: all}\n")
    applied = waybill("apply", "copy.yaml").out.splitlines()
    assert applied[0] == "copy: changed"
    assert all(line.startswith("  + examples[") for line in applied[1:])
    with (folder / "logs" / "a.log").open("a") as more:
        more.write("level=error host=b\n")
    assert waybill("run", "copy", "--engine", "inline").code == 0
    assert (folder / "out" / "copy.txt").read_text() == "level=error host=a\nlevel=error host=b\n"
