"""A test session leaves nothing behind, and says so when a test did or when a server test was skipped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from connect_core.stack import processes

ROOT = Path(__file__).parents[3]
COSTLY = pytest.mark.fault(costly=True)
LEAVES_A_PROCESS = """
import subprocess, warnings

def test_leaves_a_process(tmp_path):
    subprocess.Popen(["sleep", "61"], start_new_session=True).returncode = 0
"""
SKIPS_A_SERVER_TEST = """
import pytest

@pytest.mark.server
def test_needs_a_server():
    pytest.skip("no server")
"""
USES_A_SERVER = """
import os, pathlib, pytest, time

@pytest.mark.server
def test_uses_postgresql(postgres_url):
    pathlib.Path(os.environ["TOLD"]).write_text(os.environ["WAYBILL_TEST_SESSION"])
    {then}
"""


def command(folder: Path, body: str, *options: str) -> list[str]:
    test = folder / "test_inner.py"
    test.write_text(body)
    # The plug-in comes by name: a conftest is not looked for above the folder of the test.
    words = [sys.executable, "-m", "pytest", "-q", "-c", str(ROOT / "pyproject.toml"), "-p", "tests.servers"]
    return [*words, "-p", "no:cacheprovider", *options, str(test)]


def run(folder: Path, body: str, *options: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "TOLD": str(folder / "told")}
    return subprocess.run(
        command(folder, body, *options), cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120
    )


def test_a_process_that_a_test_left_fails_the_run_by_name(tmp_path: Path) -> None:
    done = run(tmp_path, LEAVES_A_PROCESS)
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout + done.stderr
    assert "left process" in done.stderr
    assert "sleep 61" in done.stderr


@pytest.mark.parametrize(
    ("options", "code", "workers"),
    [
        (["--require-servers"], 1, ["-n", "1"]),
        ([], 0, []),
        pytest.param(["--require-servers"], 1, [], marks=COSTLY),
        pytest.param([], 0, ["-n", "1"], marks=COSTLY),
    ],
)
def test_a_skipped_server_test_fails_where_servers_are_required(
    tmp_path: Path, options: list[str], code: int, workers: list[str]
) -> None:
    done = run(tmp_path, SKIPS_A_SERVER_TEST, *options, *workers)
    assert done.returncode == code, done.stdout + done.stderr
    assert ("test_needs_a_server" in done.stderr) == bool(code)


@pytest.mark.parametrize("workers", [pytest.param([], marks=COSTLY), ["-n", "1"]])
def test_servers_and_their_folder_are_gone_after_a_run(tmp_path: Path, workers: list[str]) -> None:
    done = run(tmp_path, USES_A_SERVER.format(then=""), *workers)
    assert done.returncode == 0, done.stdout + done.stderr
    folder = Path((tmp_path / "told").read_text())
    assert not folder.exists()
    assert not users_of(folder)


@pytest.mark.parametrize("sign", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=COSTLY)])
def test_servers_end_with_a_run_that_is_cut_off(tmp_path: Path, sign: signal.Signals) -> None:
    told = tmp_path / "told"
    words = command(tmp_path, USES_A_SERVER.format(then="time.sleep(60)"))
    with (tmp_path / "out").open("w") as out:
        session = subprocess.Popen(
            words,
            cwd=ROOT,
            env={**os.environ, "TOLD": str(told)},
            stdout=out,
            stderr=out,
            preexec_fn=lambda: signal.signal(
                signal.SIGINT, signal.default_int_handler
            ),  # a job in the background has none
        )
        try:
            assert processes.wait_until(lambda: told.exists() and told.read_text() != "", 120)
            folder = Path(told.read_text())
            assert users_of(folder)
            session.send_signal(sign)
        finally:
            session.wait(120)
    assert processes.wait_until(lambda: not users_of(folder) and not folder.exists(), 120)


def users_of(folder: Path) -> list[str]:
    """Command lines that name the folder of a session: its servers do."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().decode(errors="replace")
            except OSError:
                continue
            if str(folder) in words:
                found.append(words)
    return found
