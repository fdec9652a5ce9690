"""Every list in a terminal of 80 columns: one line a row, none longer, no number broken; and in full with --wide.

The terminal is a real one (a pty). What the numbers must be is read from the command's own JSON.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from connect_core.cli.app import app
from connect_core.ledger import Ledger
from tests.unit.cli.conftest import Waybill, built
from tests.unit.cli.crowd import BACKFILL, DOCUMENT, NAME, crowded
from tests.unit.service.test_importing import stored

ROOM = 80
LISTS = [
    ("connectors", "list"),
    ("plan", NAME),
    ("lag",),
    ("lag", NAME),
    ("runs",),
    ("runs", NAME),
    ("receipts",),
    ("receipts", NAME),
    ("gaps",),
    ("verify", NAME),
    ("offsets", "show", NAME),
    ("offsets", "history", NAME),
    ("backfills", "list"),
    ("backfills", "show", NAME, BACKFILL),
    ("dead-letters", "list", NAME),
    ("rules", "list", NAME),
    ("status",),
    ("dev", "status"),
    ("import", "kafka-connect", "--from", "answers.json"),
    ("import", "rocketmq-connect", "--store", "store"),
    ("tokens", "list"),
    ("plugins",),
]
TEXTS = [("doctor",), ("options", "rocketmq"), ("plugins", "mqtt")]
"""Their sentences must be read whole: they go on in the next line, and never get wider than the terminal."""
NEEDS_SERVERS = ("groups", "translate")

_WAYBILL = (sys.executable, "-c", "from connect_core.cli.app import app; app()")
Typed = Callable[..., list[str]]


@pytest.fixture(scope="module")
def plant(tmp_path_factory: pytest.TempPathFactory, empty_ledger: Path) -> Path:
    folder = tmp_path_factory.mktemp("plant")
    (folder / "out").mkdir()
    (folder / ".waybill").mkdir()
    shutil.copy(empty_ledger, folder / ".waybill" / "ledger.db")
    (folder / "plant.yaml").write_text(DOCUMENT)
    kind = "org.apache.rocketmq.connect.file.FileSourceConnector"
    source = {"connector.class": kind, "filename": "out/readings.txt", "connect.topicname": "readings"}
    stored(folder / "store", {f"{NAME}-{number}": source for number in range(3)}, {})
    answers = [{"name": f"{NAME}-{number}", "config": source} for number in range(3)]
    (folder / "answers.json").write_text(json.dumps(answers))
    with pytest.MonkeyPatch.context() as there:
        there.chdir(folder)
        for name in ("WAYBILL_HOME", "WAYBILL_DATABASE_URL"):
            there.delenv(name, raising=False)
        built(app)(["apply", "plant.yaml"], standalone_mode=False)
        for token in ("prometheus", "a-token-with-a-long-name-for-a-team"):
            patterns = ["--connectors", "team-a-*", "--connectors", f"{token}-*"]
            built(app)(["tokens", "create", token, "--role", "viewer", *patterns], standalone_mode=False)
    crowded(Ledger.open(f"sqlite:///{folder}/.waybill/ledger.db"), folder)
    return folder


@pytest.fixture
def terminal(folder: Path, plant: Path, monkeypatch: pytest.MonkeyPatch) -> Typed:
    """What a command shows in a terminal of 80 columns, by line, without its styles."""
    monkeypatch.chdir(plant)
    monkeypatch.setenv("COLUMNS", str(ROOM))

    def typed(*words: str) -> list[str]:
        return _shown(list(words))

    return typed


@pytest.mark.parametrize("words", LISTS, ids=" ".join)
def test_a_list_fits_80_columns(words: tuple[str, ...], terminal: Typed, waybill: Waybill, plant: Path) -> None:
    lines = _last_part(terminal(*words))
    assert max(cell_len(line) for line in lines) <= ROOM
    told = waybill(*words, "--json").json
    assert _numbers(lines) <= _numbers_of(told)
    expected = _rows(told)
    assert _listed(lines) == expected > 0


@pytest.mark.parametrize("words", LISTS, ids=" ".join)
def test_wide_shows_every_column_in_full(
    words: tuple[str, ...], terminal: Typed, waybill: Waybill, plant: Path
) -> None:
    wide, piped = terminal(*words, "--wide"), waybill(*words).out.splitlines()
    assert not any("…" in line for line in [*wide, *piped])
    assert [line.split() for line in wide if line.strip("─ ")] == [line.split() for line in piped if line]
    assert not any(line.startswith(("Not shown", "Shortened")) for line in [*wide, *piped])


@pytest.mark.parametrize("words", TEXTS, ids=" ".join)
def test_sentences_go_on_in_the_next_line(words: tuple[str, ...], terminal: Typed, waybill: Waybill) -> None:
    lines = terminal(*words)
    assert max(cell_len(line) for line in lines) <= ROOM
    shown = set(" ".join(lines).split())
    told = waybill(*words, "--json").json
    of_plugins = [option for one in told.get("plugins", ()) for option in one["options"]]
    for one in of_plugins or told.get("findings") or told["options"]:
        assert set((one.get("next_step") or one.get("description") or one.get("doc") or "").split()) <= shown


def test_what_is_left_out_and_shortened_is_said(terminal: Typed) -> None:
    said = " ".join(terminal("receipts"))
    left_out = re.search(r"Not shown: ([A-Z ,]+)\. Shortened: CONNECTOR, PARTITION\. --wide and --json show", said)
    assert left_out
    assert {"SETTLED AT", "DUPLICATES"} <= set(left_out[1].split(", "))
    assert not any("Not shown" in line for line in terminal("backfills", "show", NAME, BACKFILL))


def test_every_list_is_here() -> None:
    """A command that can be wide shows a list."""
    named = {words[:2] if words[0] in _GROUPS else words[:1] for words in [*LISTS, *TEXTS, NEEDS_SERVERS]}
    assert named == {words for words, command in _commands() if any(p.name == "wide" for p in command.params)}


def test_the_size_is_that_of_the_terminal(plant: Path) -> None:
    """Without COLUMNS, in a process of its own."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 64, 0, 0))
    with _read(ours) as shown:
        done = subprocess.run([*_WAYBILL, "receipts"], cwd=plant, env=_environment(), stdout=theirs, check=False)
        os.close(theirs)
    assert done.returncode == 0
    lines = _plain(shown)
    assert 60 < max(cell_len(line) for line in lines) <= 64


# -------------------------------------------------------------------------------------------------------- the terminal


@contextmanager
def _read(ours: int) -> Iterator[bytearray]:
    """Everything that comes out of a terminal until its other end is closed; complete when this has ended."""
    shown = bytearray()

    def read_all() -> None:
        with suppress(OSError):  # the other end is closed
            while read := os.read(ours, 65536):
                shown.extend(read)

    reader = threading.Thread(target=read_all)
    reader.start()
    try:
        yield shown
    finally:
        reader.join()
        os.close(ours)


def _shown(words: list[str]) -> list[str]:
    ours, theirs = pty.openpty()
    with _read(ours) as shown, open(theirs, "w", encoding="utf-8") as file, redirect_stdout(file):
        built(app)(words, standalone_mode=False)
    return _plain(shown)


def _plain(shown: bytearray) -> list[str]:
    text = re.sub(r"\x1b\[[0-9;]*m", "", shown.decode()).replace("\r\n", "\n")
    return text.rstrip("\n").split("\n")


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("WAYBILL_")}
    return {name: value for name, value in kept.items() if name not in ("COLUMNS", "LINES")}


# ------------------------------------------------------------------------------------------------------- what is listed

_LISTED = ("partitions", "connectors", "runs", "receipts", "gaps", "offsets", "history", "backfills", "parts")
_LISTED += ("dead_letters", "rules", "others", "tokens", "plugins")
"""Where a command's JSON has its list; `parts` is behind `connectors`, for `status` tells both."""
_GROUPS = ("connectors", "offsets", "backfills", "dead-letters", "rules", "dev", "groups", "import", "tokens")
_BIG = re.compile(r"(?<![\w/.:-])\d[\d,]*(?![\w/.:-])")


def _numbers(lines: list[str]) -> set[str]:
    """What stands alone: a piece of a broken number would be one of them."""
    return {number for line in lines for number in _BIG.findall(line)}


def _numbers_of(told: Any) -> set[str]:
    if isinstance(told, dict):
        return set().union(*(_numbers_of(value) for value in told.values())) if told else set()
    if isinstance(told, list):
        return set().union(*(_numbers_of(value) for value in told)) if told else set()
    return {f"{told:,}"} if isinstance(told, int) else {str(told)} | set(_BIG.findall(str(told)))


def _rows(told: dict[str, Any]) -> int:
    """Of the list in what JSON tells; of connectors with partitions these count."""
    listed = next(told[key] for key in _LISTED if isinstance(told.get(key), list))
    return sum(len(one["partitions"]) if "partitions" in one else 1 for one in listed)


def _last_part(lines: list[str]) -> list[str]:
    """The list, without the facts above it, whose values are shown in full."""
    blank = [index for index, line in enumerate(lines) if not line.strip()]
    return lines[blank[-1] + 1 :] if blank else lines


def _listed(lines: list[str]) -> int:
    """Lines below the rule that is under the last headings, as far as the hint or an empty line."""
    below = max(index for index, line in enumerate(lines) if line and not line.strip("─")) + 1
    rows = 0
    for line in lines[below:]:
        if not line.strip() or line.startswith(("Not shown", "Shortened")):
            break
        rows += 1
    return rows


def _commands() -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, command in built(app).commands.items():  # type: ignore[attr-defined]
        if hasattr(command, "commands"):
            yield from (((name, inner), one) for inner, one in command.commands.items())
        else:
            yield (name,), command
