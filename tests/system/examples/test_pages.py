"""The pages "Write a sink", "Write a source" and "Write a format", followed line by line, give a working connector."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.page_code import DOCS, blocks, cases_of_format, code_of, code_of_format, file_of_tests

OF_A_SOURCE = "{{version: 1, name: {name}, source: {{{name}: {{{options}}}}}, sink: {{file: {{path: out.txt}}}}}}\n"


@pytest.fixture
def beside(tmp_path: Path) -> Path:
    """A folder beside a checkout that is called `waybill`."""
    (tmp_path / "waybill").mkdir()
    (tmp_path / "waybill" / ".venv").symlink_to(Path(sys.executable).parents[1])
    folder = tmp_path / "mysink"
    folder.mkdir()
    return folder


def followed(folder: Path, commands: str) -> str:
    """What the commands of a page print. What they install is put beside them, not where the tests run from."""
    commands = commands.replace("pip install --no-deps", "pip install --quiet --target installed --no-deps")
    path = os.pathsep.join([str(folder / "installed"), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_sink_is_written_in_ten_minutes(beside: Path) -> None:
    first, commands, proof = blocks("write-a-sink.md", "bash")
    assert first == "cd .. && mkdir -p mysink && cd mysink\n"
    (beside / "waybill_spool.py").write_text(code_of("spool"))
    (beside / "test_spool.py").write_text(file_of_tests("spool"))
    (beside / "pyproject.toml").write_text(blocks("write-a-sink.md", "toml")[0])
    told = followed(beside, commands + proof)
    assert "guarantee: at least once" in told
    assert '"b25l"\n"dHdv"\n' in told
    assert [path.read_text() for path in (beside / "spool").iterdir()] == ['"b25l"\n"dHdv"\n']
    (count,) = re.findall(r"`(\d+ passed, \d+ skipped)`", (DOCS / "write-a-sink.md").read_text())
    assert count in told


def test_a_format_is_written_in_ten_minutes(beside: Path) -> None:
    first, commands, proof = blocks("write-a-format.md", "bash")
    assert first == "cd .. && mkdir -p myformat && cd myformat\n"
    (beside / "waybill_pairs.py").write_text(code_of_format("pairs"))
    (beside / "test_pairs.py").write_text(cases_of_format("pairs"))
    (beside / "pyproject.toml").write_text(blocks("write-a-format.md", "toml")[0])
    told = followed(beside, commands + proof)
    assert (beside / "out.txt").read_text() == "id=7,name=Ann\nid=8\n"
    assert "Not of format pairs" in told
    (count,) = re.findall(r"`(\d+ passed)`", (DOCS / "write-a-format.md").read_text())
    assert count in told


def source_run(folder: Path, name: str, document: str | None = None) -> str:
    """The source of this name on its page, installed, moves what its document says; that of the page unless given."""
    (commands,) = blocks("write-a-source.md", "bash")
    (folder / f"waybill_{name}.py").write_text(code_of(name))
    (folder / "pyproject.toml").write_text(blocks("write-a-sink.md", "toml")[0].replace("spool", name))
    if document is not None:
        commands = re.sub(r"cat > ticks.yaml <<END.*?\nEND\n", "", commands, flags=re.DOTALL)
        commands = commands.replace("tail -n 2 minutes.txt\n", "").replace("ticks", name)
        # The page's own source is installed as it says; that this is there already takes pip two seconds to find out.
        commands = re.sub(r".*pip install \"setuptools.*\n", "", commands)
        (folder / f"{name}.yaml").write_text(document)
    return followed(folder, commands)


def test_a_source_is_written_in_ten_minutes(beside: Path) -> None:
    told = source_run(beside, "ticks")
    assert "order: within each partition" in told
    minutes = [int(line.removeprefix("minute ")) for line in (beside / "minutes.txt").read_text().splitlines()]
    assert len(minutes) in (250, 251, 252)
    assert minutes == list(range(minutes[0], minutes[0] + len(minutes)))


@pytest.mark.fault(costly=True)
def test_the_log_of_the_page_moves_a_table(beside: Path) -> None:
    path = beside / "events.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE events (id INTEGER PRIMARY KEY AUTOINCREMENT, body TEXT)")
        database.executemany("INSERT INTO events (body) VALUES (?)", [(f"event {number}",) for number in range(1200)])
        database.execute("DELETE FROM events WHERE id <= 100")
        database.commit()
    source_run(beside, "events", OF_A_SOURCE.format(name="events", options=f"path: {path}"))
    assert (beside / "out.txt").read_text().splitlines() == [f"event {number}" for number in range(100, 1200)]


@pytest.mark.fault(costly=True)
def test_the_queue_of_the_page_empties_a_folder(beside: Path) -> None:
    tray = beside / "tray"
    tray.mkdir()
    for number in range(25):
        (tray / f"{number:03}.txt").write_text(f"message {number}")
    source_run(beside, "tray", OF_A_SOURCE.format(name="tray", options=f"folder: {tray}"))
    assert (beside / "out.txt").read_text().splitlines() == [f"message {number}" for number in range(25)]
    assert list(tray.iterdir()) == []
