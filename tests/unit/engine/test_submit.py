"""What spark-submit is given, what it hands back, and how its end is told. A program of ours stands for Spark's."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from connect_core.engine import driver, submit, submitting
from connect_core.errors import ConfigError, EngineFailed, Failure, OffsetGone, VersionMismatch
from connect_core.jobs.replicate import _parser

SPARK_SUBMIT = """#!{python}
import json, os, signal, sys
words = sys.argv[1:]
print(json.dumps({{"words": words, "environment": dict(os.environ), "pid": os.getpid()}}), flush=True)
print("a line for the log", file=sys.stderr)
result = words[words.index("--result") + 1]
{then}
"""

INTERPRETER = """#!{python}
print('{{"spark_home": "{home}", "version": "{version}"}}')
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., submitting.SubmitPlace]:
    """A home, and an interpreter whose spark-submit does what is said."""
    monkeypatch.setenv("SPARK_REMOTE", "sc://elsewhere")
    monkeypatch.setenv("SECRET_OF_A_DOCUMENT", "only-in-the-environment")

    def made(then: str, version: str = "4.1.3", **asked: object) -> submitting.SubmitPlace:
        program(tmp_path / "bin" / "spark-submit", SPARK_SUBMIT.format(python=sys.executable, then=then))
        python = tmp_path / "python"
        program(python, INTERPRETER.format(python=sys.executable, home=tmp_path, version=version))
        return submitting.SubmitPlace(tmp_path, Path("/java/home/bin/java"), "local[2]", python, **asked)  # type: ignore[arg-type]

    return made


def program(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def test_the_application_is_part_of_the_package() -> None:
    assert submit.application().is_file()
    assert submit.application().parent.parent.name == "connect_core"


def test_its_arguments_are_those_that_it_reads(tmp_path: Path) -> None:
    caller = driver.this_process()
    told = submit.arguments(
        "copy",
        task=3,
        stream="backfill-1",
        attempt_of="dag/run",
        accept_gaps=True,
        engine="cluster",
        result=tmp_path / "r",
        quiet=True,
        caller=caller,
    )
    read = _parser().parse_args(told)
    assert (read.connector, read.task, read.stream, read.attempt_of) == ("copy", 3, "backfill-1", "dag/run")
    assert (read.accept_gaps, read.engine, read.result, read.quiet) == (True, "cluster", tmp_path / "r", True)
    assert read.caller == caller
    read = _parser().parse_args(submit.arguments("copy"))
    assert (read.task, read.stream, read.attempt_of, read.engine, read.caller) == (None, "live", None, "", None)


@pytest.mark.parametrize(
    ("master", "here"),
    [("local[2]", True), ("spark://127.0.0.1:7077", True), ("spark://cluster:7077", False), ("yarn", False)],
)
def test_what_is_on_this_host_stays_on_loopback(master: str, here: bool, tmp_path: Path) -> None:
    assert ("spark.driver.bindAddress" in submit.confs(master)) == here
    assert ("SPARK_LOCAL_IP" in submit.environment(Path("/j/bin/java"), tmp_path, master)) == here


def test_lanes_are_never_tried_twice_and_never_lie_in_a_file() -> None:
    confs = submit.confs("yarn")
    assert (confs["spark.task.maxFailures"], confs["spark.speculation"]) == ("1", "false")
    assert confs["spark.io.encryption.enabled"] == "true"


def test_a_summary_comes_back(tmp_path: Path) -> None:
    submit.write_result(tmp_path / "r", {"delivered": 7})
    assert submit.read_result(tmp_path / "r", 0) == {"delivered": 7}
    assert [path.name for path in tmp_path.iterdir()] == ["r"]


def test_an_error_comes_back_as_its_class(tmp_path: Path) -> None:
    gone = OffsetGone("records are gone", where="p", next_step="look")
    submit.write_result(tmp_path / "r", Failure.of(gone), gone.exit_code)
    with pytest.raises(OffsetGone, match="records are gone"):
        submit.read_result(tmp_path / "r", 5)


@pytest.mark.parametrize(
    ("status", "words"), [(-9, "killed by signal 9"), (137, "killed by signal 9"), (1, "status 1")]
)
def test_an_end_without_a_word_is_a_failed_engine(tmp_path: Path, status: int, words: str) -> None:
    with pytest.raises(EngineFailed, match=words):
        submit.read_result(tmp_path / "r", status)


def test_a_run_is_submitted_and_its_summary_returned(
    place: Callable[..., submitting.SubmitPlace], tmp_path: Path
) -> None:
    there = place('open(result, "w").write(json.dumps({"summary": {"ranges": 2}}))', conf={"spark.executor.cores": "2"})
    said: list[str] = []
    assert submitting.run(there, "copy", engine="mine", accept_gaps=False, say=said.append) == {"ranges": 2}
    (told,) = map(json.loads, said)
    words, environment = told["words"], told["environment"]
    assert words[:2] == ["--master", "local[2]"]
    assert "spark.executor.cores=2" in words
    assert f"spark.pyspark.python={there.python}" in words
    assert words[words.index(str(submit.application())) + 1] == "copy"
    assert words[words.index("--engine") + 1] == "mine"
    assert (environment["JAVA_HOME"], environment["SPARK_HOME"]) == ("/java/home", str(tmp_path))
    assert environment["WAYBILL_HOME"] == str(tmp_path)
    assert "SPARK_REMOTE" not in environment
    assert environment["SECRET_OF_A_DOCUMENT"] == "only-in-the-environment"
    assert not any("only-in-the-environment" in word for word in words)
    assert "a line for the log" in (tmp_path / "logs" / "submit.log").read_text()


def test_another_spark_than_asked_for_is_refused_before_it_starts(place: Callable[..., submitting.SubmitPlace]) -> None:
    there = place("raise SystemExit(1)", version="3.5.7", spark="4.1.3")
    said: list[str] = []
    with pytest.raises(VersionMismatch, match=r"requires Spark 4\.1\.3, but its interpreter has Spark 3\.5\.7"):
        submitting.run(there, "copy", engine=None, accept_gaps=False, say=said.append)
    assert said == []


def test_an_interpreter_without_spark_is_a_fault_of_the_engine(place: Callable[..., submitting.SubmitPlace]) -> None:
    there = place("pass")
    there.python.write_text("#!/bin/sh\nexit 0\n")
    with pytest.raises(ConfigError, match="does not run, or has no pyspark"):
        submitting.run(there, "copy", engine=None, accept_gaps=False, say=print)


def test_an_application_that_was_killed_is_told_in_one_sentence(place: Callable[..., submitting.SubmitPlace]) -> None:
    there = place("os.kill(os.getpid(), signal.SIGKILL)")
    with pytest.raises(EngineFailed, match="spark-submit was killed by signal 9 before the run reported its result"):
        submitting.run(there, "copy", engine=None, accept_gaps=False, say=lambda line: None)


def test_whoever_is_interrupted_leaves_no_application_behind(place: Callable[..., submitting.SubmitPlace]) -> None:
    there = place("import time; time.sleep(60)")
    pids: list[int] = []

    def interrupted(line: str) -> None:
        pids.append(json.loads(line)["pid"])
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        submitting.run(there, "copy", engine=None, accept_gaps=False, say=interrupted)
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)


def test_the_log_is_begun_anew_when_it_has_grown_large(
    place: Callable[..., submitting.SubmitPlace], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(submitting, "_LARGEST_LOG_BYTES", 20)
    there = place('open(result, "w").write(json.dumps({"summary": {}}))')
    for _ in range(3):
        submitting.run(there, "copy", engine=None, accept_gaps=False, say=lambda line: None)
    assert (tmp_path / "logs" / "submit.log").read_text().count("a line for the log") == 1
