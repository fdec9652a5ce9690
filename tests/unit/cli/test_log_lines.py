"""What commands and runs tell as lines of JSON, for those who collect logs."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from connect_core import log_lines
from connect_core.jobs import replicate
from tests.unit.cli.conftest import Typed, Waybill


@pytest.fixture(autouse=True)
def as_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(log_lines.VARIABLE, "json")


def told(typed: Typed) -> list[dict[str, object]]:
    """Fails when one line of stderr is no JSON."""
    return [json.loads(line) for line in typed.err.splitlines()]


def test_each_line_of_a_run_says_of_which_connector_task_and_run_it_is(applied: Path, waybill: Waybill) -> None:
    lines = told(waybill("run", "copy", "--engine", "inline"))
    (run,) = waybill("runs", "copy", "--json").json["runs"]
    of_run = [line for line in lines if "run" in line]
    assert of_run
    assert {(line["connector"], line["task"], line["run"], line["level"]) for line in of_run} == {
        ("copy", 0, run["id"], "info")
    }
    assert any("100%" in str(line["message"]) for line in of_run)
    assert all(str(line["at"]).endswith("Z") for line in lines)


def test_an_error_is_a_line_of_its_level(applied: Path, waybill: Waybill) -> None:
    [line] = told(waybill("runs", "nobody"))
    assert (line["level"], line["kind"]) == ("error", "ConfigError")
    assert "nobody" in str(line["message"])


def test_results_are_as_ever(applied: Path, waybill: Waybill, monkeypatch: pytest.MonkeyPatch) -> None:
    as_json = waybill("status").out
    monkeypatch.delenv(log_lines.VARIABLE)
    assert waybill("status").out == as_json


def test_a_form_that_there_is_not_is_refused(waybill: Waybill, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(log_lines.VARIABLE, "xml")
    refused = waybill("status")
    assert (refused.code, refused.err) == (
        2,
        "Error: There is no log format 'xml' [WAYBILL_LOG_FORMAT]. Choose text or json\n",
    )


def test_a_record_of_a_server_is_one_line() -> None:
    try:
        raise ValueError("wrong")
    except ValueError as error:
        record = logging.LogRecord("a.b", logging.ERROR, "", 0, "It %s", ("failed",), (type(error), error, None))
    line = log_lines.JsonFormatter().format(record)
    found = json.loads(line)
    assert "\n" not in line
    assert (found["level"], found["logger"], found["message"]) == ("error", "a.b", "It failed")
    assert found["trace"].endswith("ValueError: wrong")


def test_a_spark_application_tells_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    replicate._say("moved")
    assert json.loads(capsys.readouterr().err)["message"] == "moved"
