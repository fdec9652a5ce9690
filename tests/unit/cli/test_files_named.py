"""Rules and filters that name the line and its file, with the command as typed. No servers."""

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
