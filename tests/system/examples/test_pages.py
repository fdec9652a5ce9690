"""The pages "Write a sink" and "Write a source", followed line by line, give a working connector."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL)


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
    commands = commands.replace("pip install", "pip install --quiet --target installed")
    environment = {**os.environ, "PYTHONPATH": str(folder / "installed")}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_sink_is_written_in_ten_minutes(beside: Path) -> None:
    first, commands = blocks("write-a-sink.md", "bash")
    assert first == "mkdir -p mysink && cd mysink\n"
    (beside / "waybill_spool.py").write_text(blocks("write-a-sink.md", "python")[0])
    (beside / "pyproject.toml").write_text(blocks("write-a-sink.md", "toml")[0])
    told = followed(beside, commands)
    assert "one\ntwo\n" in told
    assert [path.read_text() for path in (beside / "spool").iterdir()] == ["one\ntwo\n"]


def test_a_source_is_written_in_ten_minutes(beside: Path) -> None:
    _, commands = blocks("write-a-sink.md", "bash")
    (beside / "waybill_ticks.py").write_text(blocks("write-a-source.md", "python")[0])
    (beside / "pyproject.toml").write_text(blocks("write-a-sink.md", "toml")[0].replace("spool", "ticks"))
    since = int(time.time()) // 60 - 250
    document = blocks("write-a-source.md", "yaml")[0].replace("29300000", str(since))
    own = re.sub(r"cat > copy.yaml <<'END'.*?END\n", "", commands, flags=re.DOTALL)
    own = own.replace("cat spool/*\n", "").replace("copy.yaml", "ticks.yaml").replace(" copy", " ticks")
    (beside / "ticks.yaml").write_text(document)
    followed(beside, own)
    minutes = (beside / "minutes.txt").read_text().splitlines()
    assert minutes[:250] == [f"minute {since + number}" for number in range(250)]
    assert len(minutes) in (250, 251)
