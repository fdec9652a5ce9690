"""What the README and the guide tell people to type works in a fresh shell, in the order in which it stands there.

`make demo` is the first command of the README and the ground for its five others.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.system.demo.conftest import ROOT, Shell

pytestmark = [pytest.mark.server, pytest.mark.timeout(900)]

NOT_RUN = {"make test"}
"""Would run this very test; that there is such a target is looked at."""


def commands(page: Path) -> list[str]:
    """Every line of the page's `sh` blocks, without its comment."""
    blocks = re.findall(r"```sh\n(.*?)```", page.read_text(), re.DOTALL)
    return [line.partition("  #")[0].strip() for block in blocks for line in block.splitlines() if line.strip()]


def test_the_demo_tells_what_it_compared(demo: str) -> None:
    assert "The first lines have arrived" in demo
    assert demo.count("all hold") == 6
    (of_logs,), (of_file,) = re.findall(r"of the logs (\w{64})", demo), re.findall(r"of the file (\w{64})", demo)
    assert of_logs == of_file
    (said,), (heard,) = re.findall(r"devices said (\w{64})", demo), re.findall(r"was heard +(\w{64})", demo)
    assert said == heard


def test_airflow_s_retries_in_the_demo_found_something(demo: str) -> None:
    found = re.findall(r"it found ([\d,]+) records", demo)
    assert len(found) == 2
    assert int(found[0].replace(",", "")) > 0, "the other one may be hit behind what is settled"


def test_the_backfill_of_the_demo_has_the_first_lines(demo: str) -> None:
    (lines,) = re.findall(r"The backfill's file has the first ([\d,]+) lines", demo)
    assert int(lines.replace(",", "")) > 3_000


def test_the_commands_that_the_demo_prints(demo: str, shell: Shell) -> None:
    printed = demo.partition("Five commands to paste")[2].split("\n\n")[1].splitlines()
    assert len(printed) == 5
    for command in printed:
        done = shell.run(command)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        assert "demo-1" in done.stdout


@pytest.mark.usefixtures("demo")
def test_the_commands_of_the_readme(shell: Shell) -> None:
    told = commands(ROOT / "README.md")
    assert {"make demo", "make test"} <= set(told)
    for command in [command for command in told if command not in {"make demo", *NOT_RUN}]:
        done = shell.run(command)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    for command in NOT_RUN:
        assert shell.run(command.replace("make", "make -n")).returncode == 0


@pytest.mark.fault(costly=True)
@pytest.mark.usefixtures("demo")
def test_the_guide_from_begin_to_end(shell: Shell) -> None:
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "docs" / "guide.md").read_text(), re.DOTALL)
    done = shell.run("\n".join(blocks), shell.folder)
    assert done.returncode == 0, done.stdout + done.stderr
    copied = (shell.folder / "guide" / "words.copy").read_text().splitlines()
    assert sorted(copied) == ["one", "three", "two"]


@pytest.mark.parametrize(
    "page", ["README.md", "CHANGELOG.md", *sorted(f"docs/{p.name}" for p in (ROOT / "docs").glob("*.md"))]
)
def test_links_lead_somewhere(page: str) -> None:
    path = ROOT / page
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", path.read_text())
    missing = [link for link in links if "://" not in link and not (path.parent / link).exists()]
    assert not missing
