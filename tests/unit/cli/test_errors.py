"""What a failing command looks like: one clean message, one exit code, never a stack trace; and help is quick."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
import typer
from typer.testing import CliRunner

from connect_core import errors
from connect_core.cli.errors import Commands
from connect_core.cli.output import JsonFlag
from tests.unit.cli.conftest import Waybill


def _all(root: type[errors.WaybillError]) -> Iterator[type[errors.WaybillError]]:
    yield root
    for child in root.__subclasses__():
        if child.__module__ == errors.__name__:
            yield from _all(child)


def _failing(error: BaseException) -> typer.Typer:
    app = typer.Typer(cls=Commands, pretty_exceptions_enable=False)

    @app.callback()
    def root(debug: bool = False) -> None:
        """As the real root has it."""

    @app.command()
    def fail(as_json: JsonFlag = False) -> None:
        raise error

    return app


@pytest.mark.parametrize("kind", list(_all(errors.WaybillError)))
def test_each_class_has_its_exit_code_and_one_message(kind: type[errors.WaybillError]) -> None:
    error = kind("it broke", where="connector x", next_step="Mend it")
    result = CliRunner().invoke(_failing(error), ["fail"])
    assert result.exit_code == kind.exit_code
    assert result.stderr == "Error: it broke [connector x]. Mend it\n"
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (errors.Retriable, 1),
        (errors.ConfigError, 2),
        (errors.Unreachable, 3),
        (errors.LeaseHeld, 4),
        (errors.Fenced, 4),
        (errors.OffsetGone, 5),
        (errors.Refused, 6),
    ],
)
def test_the_exit_codes_are_the_documented_ones(kind: type[errors.WaybillError], code: int) -> None:
    assert CliRunner().invoke(_failing(kind("x")), ["fail"]).exit_code == code


def test_an_unexpected_error_is_no_stack_trace_unless_asked_for() -> None:
    app = _failing(ZeroDivisionError("one by zero"))
    plain = CliRunner().invoke(app, ["fail"])
    assert plain.exit_code == 6
    assert "Unexpected error, please report it: ZeroDivisionError: one by zero" in plain.stderr
    assert "Traceback" not in plain.stderr
    assert "Traceback" in CliRunner().invoke(app, ["--debug", "fail"]).stderr


def test_ctrl_c_is_130() -> None:
    result = CliRunner().invoke(_failing(KeyboardInterrupt()), ["fail"])
    assert (result.exit_code, result.stderr) == (130, "Interrupted\n")


@pytest.mark.parametrize(
    "words",
    [("nope",), ("offsets", "set", "x"), ("runs", "--last", "0"), ("check",), ("offsets", "set", "x", "p", "-1")],
)
def test_wrong_usage_is_2(words: tuple[str, ...], waybill: Waybill) -> None:
    typed = waybill(*words)
    assert typed.code == 2
    assert typed.out == ""


def test_wrong_settings_are_2(waybill: Waybill, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAYBILL_QUANTUM_S", "soon")
    typed = waybill("status")
    assert typed.code == 2
    assert "quantum_s: 'soon' is not a duration" in typed.err


def test_version_and_help(waybill: Waybill) -> None:
    assert waybill("--version").out.startswith("waybill ")
    assert "connectors" in waybill("--help").out


def test_help_loads_nothing_heavy() -> None:
    heavy = [
        "pyarrow",
        "pyspark",
        "pydantic",
        "sqlalchemy",
        "numpy",
        "yaml",
        "connect_core.stack",
        "connect_core.systems",
        "connect_core.remote",
        "httpx",
    ]
    code = f"import sys, connect_core.cli.app; print([name for name in {heavy} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert found.stdout == "[]\n"
