"""Engines by name: kinds, files of the installation, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from connect_core.config import Settings, engine_for, engine_named
from connect_core.config.engines import KINDS, OURS, EngineOptions
from connect_core.engine import submit
from connect_core.engine.spark_checks import installed_version
from connect_core.errors import ConfigError

ROOT = Path(__file__).parents[3]

DOCUMENT = """\
version: 1
name: copy
source: {file: {path: in.log}}
sink: {file: {path: out.log}}
"""

WHOLE = """\
kind: submit
python: /opt/spark/bin/python
spark: 4.1.3
master: spark://127.0.0.1:7077
conf: {spark.executor.memory: 2g}
"""


def write(home: Path, name: str, text: str) -> None:
    folder = home.parent / "conf" / "engines"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.yaml").write_text(text)


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_an_engine_by_itself(kind: str, home: Path) -> None:
    assert engine_named(kind, home) == EngineOptions(kind=kind)


def test_a_file_names_interpreter_version_and_place(home: Path) -> None:
    write(home, "cluster", WHOLE)
    found = engine_named("cluster", home)
    assert (found.kind, found.python, found.spark) == ("submit", Path("/opt/spark/bin/python"), "4.1.3")
    assert (found.master, found.conf) == ("spark://127.0.0.1:7077", {"spark.executor.memory": "2g"})


@pytest.mark.parametrize("file", sorted((ROOT / "conf" / "engines").glob("*.yaml")), ids=lambda file: file.stem)
def test_every_engine_in_conf_is_sound_and_of_the_version_that_is_installed(file: Path) -> None:
    assert engine_named(file.stem, ROOT / ".waybill").spark in (None, installed_version())


def test_a_file_of_a_kinds_name_says_what_that_is(home: Path) -> None:
    write(home, "submit", "{kind: submit, spark: 4.1.3}")
    assert engine_named("submit", home).spark == "4.1.3"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("{kind: flink}", "kind: input should be 'spark', 'inline' or 'submit'"),
        ("{python: /x}", "kind: is missing"),
        ("{kind: submit, python: bin/python}", "python: 'bin/python' is not an absolute path"),
        ("{kind: submit, spark: '4'}", "spark: string should match"),
        ("{kind: submit, master: mesos://x}", "master: string should match"),
        ("{kind: submit, memory: 1g}", 'memory: unknown key "memory"'),
        ("{kind: inline, master: yarn}", "master is only for engines of kind submit"),
        ("{kind: spark, python: /x}", "python is only for engines of kind submit"),
        ("{kind: submit, conf: {spark.task.maxFailures: '4'}}", "spark.task.maxFailures cannot be set"),
        ("{kind: submit, conf: {spark.ssl.keyPassword: x}}", "would be visible to everyone on a command line"),
        ("{kind: submit, conf: {memory: 2g}}", "memory is not a setting of Spark"),
        ("[]", "An engine file holds one mapping"),
    ],
)
def test_a_faulty_engine_is_told(text: str, fault: str, home: Path) -> None:
    write(home, "mine", text)
    with pytest.raises(ConfigError) as raised:
        engine_named("mine", home)
    assert fault in str(raised.value)


def test_all_faults_of_an_engine_are_told_at_once(home: Path) -> None:
    write(home, "mine", "{kind: submit, python: x, spark: y, master: z}")
    with pytest.raises(ConfigError) as raised:
        engine_named("mine", home)
    assert {fault.path for fault in raised.value.faults} == {"python", "spark", "master"}


@pytest.mark.parametrize("name", ["../secret", ".hidden", "a/b"])
def test_a_name_is_no_path(name: str, home: Path) -> None:
    with pytest.raises(ConfigError, match="cannot name an engine"):
        engine_named(name, home)


def test_a_document_may_ask_for_an_engine_that_there_is(faults: Callable[..., list[str]], home: Path) -> None:
    write(home, "cluster", WHOLE)
    assert not faults(DOCUMENT + "engine: cluster\n")
    assert not faults(DOCUMENT + "engine: submit\n")


def test_an_engine_that_is_not_there_is_a_fault_among_the_others(faults: Callable[..., list[str]], home: Path) -> None:
    write(home, "cluster", WHOLE)
    told = faults(DOCUMENT + "engine: clutser\ntasks: 0\n")
    assert any(fault.startswith("tasks: ") for fault in told)
    assert any(fault.startswith("engine: line 5: ") and "did you mean cluster?" in fault for fault in told)


def test_a_document_cannot_name_a_program(faults: Callable[..., list[str]]) -> None:
    assert faults(DOCUMENT + "engine: {kind: submit, python: /tmp/mine}\n")


def test_the_command_line_comes_before_the_document_and_that_before_the_setting(home: Path, settings: Settings) -> None:
    asks = {"engine": "submit"}
    assert engine_for(asks, settings, home, flag="inline").kind == "inline"
    assert engine_for(asks, settings, home).kind == "submit"
    assert engine_for({}, settings, home).kind == "spark"


def test_what_no_engine_may_change_is_what_the_driver_sets() -> None:
    assert set(OURS) <= set(submit.lane_settings())
