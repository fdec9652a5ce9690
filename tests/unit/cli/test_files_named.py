"""Rules and filters that name the line, its file and its fields, with the command as typed. No servers."""

from __future__ import annotations

import os
from pathlib import Path

from tests.unit.cli.conftest import DOCUMENT, Waybill


def _apply(waybill: Waybill, folder: Path, rest: str) -> None:
    (folder / "copy.yaml").write_text(DOCUMENT.format(name="copy") + rest)
    typed = waybill("apply", "copy.yaml")
    assert typed.code == 0, typed.err


def test_lines_are_chosen_by_their_text_and_their_file(waybill: Waybill, applied: Path) -> None:
    logs, target = applied / "logs", applied / "out" / "copy.txt"
    _apply(waybill, applied, "filter: {when: \"file:name = 'a.log' AND payload:text CONTAINS 't'\"}\n")
    (logs / "b.log").write_text("not of the file\n")
    assert waybill("run", "copy", "--engine", "inline").code == 0
    assert target.read_text() == "two\nthree\n"


def test_lines_that_were_rotated_keep_the_name_under_which_they_were_found(waybill: Waybill, applied: Path) -> None:
    log, target = applied / "logs" / "a.log", applied / "out" / "copy.txt"
    _apply(waybill, applied, "rules: [{name: all, when: \"file:name = 'a.log'\"}]\n")
    assert waybill("run", "copy", "--engine", "inline").code == 0
    with log.open("a") as more:
        more.write("four\n")
    log.rename(f"{log}.1")
    log.write_text("five\n")
    os.utime(f"{log}.1", (0, 0))  # nobody has written to it for a while
    assert waybill("run", "copy", "--engine", "inline").code == 0
    assert target.read_text() == "one\ntwo\nthree\nfour\nfive\n"


def test_a_trial_shows_the_file_and_the_place_of_the_last_lines(waybill: Waybill, applied: Path) -> None:
    _apply(waybill, applied, 'rules: [{name: all, keys: "{file:name}@{file:offset}", tags: "{payload:text}"}]\n')
    told = waybill("rules", "try", "copy", "--last", "2", "--json").json["records"]
    assert [(one["value"], one["becomes"][0]["key"], one["becomes"][0]["tags"]) for one in told] == [
        ("two", "a.log@4", "two"),
        ("three", "a.log@8", "three"),
    ]


ACCESS = """\
10.0.0.7 - - [28/Nov/2026:06:15:02 +0000] "GET /shop HTTP/1.1" 200 2326 "-" "curl/8.5"
10.0.0.8 - ann [28/Nov/2026:06:15:03 +0000] "GET /pay HTTP/1.1" 502 17 "-" "curl/8.5"
no access
"""
ERRORS = """\
parse: {format: combined}
rules: [{name: errors, when: "$.status >= 500", keys: "{$.client} {$.user}"}]
errors: {tolerance: 1}
"""


def test_lines_of_a_web_server_are_chosen_by_their_fields(waybill: Waybill, applied: Path) -> None:
    (applied / "logs" / "a.log").write_text(ACCESS)
    _apply(waybill, applied, ERRORS)
    tried = waybill("rules", "try", "copy")
    assert tried.out.splitlines()[1::2] == [
        "  filtered",
        "  -> errors: key 10.0.0.8 ann",
        "  rejected: Not of format combined: It does not match the pattern",
    ]
    told = waybill("run", "copy", "--engine", "inline", "--json").json
    assert (told["read"], told["filtered"], told["rejected"], told["delivered"]) == (3, 1, 1, 1)
    assert (applied / "out" / "copy.txt").read_text() == ACCESS.splitlines(keepends=True)[1], "the line as it was"
    (dead,) = waybill("dead-letters", "list", "copy", "--json").json["dead_letters"]
    assert (dead["offset"], dead["stage"], dead["kind"]) == (ACCESS.index("no access"), "parse", "NotParsed")


def test_a_line_that_is_not_of_the_format_stops_the_run_by_default(waybill: Waybill, applied: Path) -> None:
    (applied / "logs" / "a.log").write_text(ACCESS)
    _apply(waybill, applied, ERRORS.replace("tolerance: 1", "tolerance: none"))
    typed = waybill("run", "copy", "--engine", "inline")
    assert (typed.code, "stage parse (NotParsed: Not of format combined" in typed.err) == (5, True), typed.err


def test_a_mistyped_field_is_a_fault_before_anything_is_read(waybill: Waybill, applied: Path) -> None:
    (applied / "copy.yaml").write_text(DOCUMENT.format(name="copy") + ERRORS.replace("$.status", "status"))
    typed = waybill("check", "copy.yaml")
    assert typed.code == 2
    assert "rules.0.when: line 6: rule errors: 'status' names a header, which records of file do not have" in typed.err
    assert "did you mean $.status?" in typed.err


def test_a_format_that_no_rule_uses_is_advised_against(waybill: Waybill, applied: Path) -> None:
    (applied / "copy.yaml").write_text(DOCUMENT.format(name="copy") + "parse: {format: logfmt}\n")
    typed = waybill("check", "copy.yaml")
    assert (typed.code, "parse: no rule names what it makes" in typed.err + typed.out) == (0, True)
