"""The pages "Write a sink" and "Write a source", followed line by line, give a working connector."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.page_code import blocks, code_of

OF_A_SOURCE = "{{version: 1, name: {name}, source: {{{name}: {{{options}}}}}, sink: {{file: {{path: out.txt}}}}}}\n"


@pytest.fixture
def beside(tmp_path: Path) -> Path:
    """A folder beside a checkout that is called `waybill`."""
    (tmp_path / "waybill" / ".venv").mkdir(parents=True)
    (tmp_path / "waybill" / ".venv" / "bin").symlink_to(Path(sys.executable).parent)
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
    first, commands = blocks("write-a-sink.md", "bash")
    assert first == "mkdir -p mysink && cd mysink\n"
    (beside / "waybill_spool.py").write_text(code_of("spool"))
    (beside / "pyproject.toml").write_text(blocks("write-a-sink.md", "toml")[0])
    told = followed(beside, commands)
    assert '"b25l"\n"dHdv"\n' in told
    assert [path.read_text() for path in (beside / "spool").iterdir()] == ['"b25l"\n"dHdv"\n']


def source_run(folder: Path, name: str, document: str) -> None:
    """The source of this name on its page, installed, moves what its document says."""
    _, commands = blocks("write-a-sink.md", "bash")
    (folder / f"waybill_{name}.py").write_text(code_of(name))
    (folder / "pyproject.toml").write_text(blocks("write-a-sink.md", "toml")[0].replace("spool", name))
    own = re.sub(r"cat > copy.yaml <<'END'.*?END\n", "", commands, flags=re.DOTALL)
    own = own.replace("cat spool/*\n", "").replace("copy.yaml", f"{name}.yaml").replace(" copy", f" {name}")
    (folder / f"{name}.yaml").write_text(document)
    followed(folder, own)


def test_a_source_is_written_in_ten_minutes(beside: Path) -> None:
    since = int(time.time()) // 60 - 250
    source_run(beside, "ticks", blocks("write-a-source.md", "yaml")[0].replace("29300000", str(since)))
    minutes = (beside / "minutes.txt").read_text().splitlines()
    assert minutes[:250] == [f"minute {since + number}" for number in range(250)]
    assert len(minutes) in (250, 251)


def test_the_log_of_the_page_moves_a_table(beside: Path) -> None:
    path = beside / "events.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE events (id INTEGER PRIMARY KEY AUTOINCREMENT, body TEXT)")
        database.executemany("INSERT INTO events (body) VALUES (?)", [(f"event {number}",) for number in range(1200)])
        database.execute("DELETE FROM events WHERE id <= 100")
        database.commit()
    source_run(beside, "events", OF_A_SOURCE.format(name="events", options=f"path: {path}"))
    assert (beside / "out.txt").read_text().splitlines() == [f"event {number}" for number in range(100, 1200)]


def test_the_queue_of_the_page_empties_a_folder(beside: Path) -> None:
    tray = beside / "tray"
    tray.mkdir()
    for number in range(25):
        (tray / f"{number:03}.txt").write_text(f"message {number}")
    source_run(beside, "tray", OF_A_SOURCE.format(name="tray", options=f"folder: {tray}"))
    assert (beside / "out.txt").read_text().splitlines() == [f"message {number}" for number in range(25)]
    assert list(tray.iterdir()) == []
