"""The examples of the pages on what records hold: each block of commands, run in a fresh folder, prints what the block
behind it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from connect_core.stack import postgresql
from tests.postgres_tables import Database
from tests.protobuf import protoc_in
from tests.site import Site
from tests.warm_shell import waybill_for_shells

pytestmark = pytest.mark.server

DOCS = Path(__file__).resolve().parents[3] / "docs"


@pytest.mark.parametrize(
    ("page", "blocks"),
    [
        *(("rules.md", 6), ("transforms.md", 10), ("sql.md", 1), ("trace.md", 1)),
        *(("avro.md", 1), ("protobuf.md", 1), ("debezium.md", 2), ("cloudevents.md", 1), ("keys.md", 1)),
    ],
)
def test_the_page_is_what_happens(site: Site, page: str, blocks: int) -> None:
    text = (DOCS / page).read_text()
    assert text.count("```sh\n") == blocks
    _happens(site, text, blocks)


def test_the_section_on_encrypted_dead_letters_is_what_happens(bare_site: Site) -> None:
    section = (DOCS / "dead-letters.md").read_text().partition("## Encrypted\n")[2].partition("\n## ")[0]
    _happens(bare_site, section, 2)


def test_the_section_on_tables_as_a_source_is_what_happens(bare_site: Site, postgres_url: str) -> None:
    where = Database(postgres_url).options
    bare_site.settings |= {f"PG{name.upper()}": str(where[name]) for name in ("host", "database", "user")}
    bare_site.settings["PATH"] = os.pathsep.join([str(postgresql.binaries()), os.environ["PATH"]])
    section = (DOCS / "tables.md").read_text().partition("## A table as the source\n")[2]
    _happens(bare_site, section, 1)


def _happens(site: Site, text: str, blocks: int) -> None:
    found = re.findall(r"```sh\n(.*?)```\s*```text\n(.*?)```", text, re.DOTALL)
    assert len(found) == blocks
    environment = site.environment()
    tools = protoc_in(site.folder / "tools")
    with waybill_for_shells(site.folder) as programs:
        path = (programs, tools, Path(sys.executable).parent, environment["PATH"])
        environment["PATH"] = os.pathsep.join(map(str, path))
        for commands, expected in found:
            script = ["bash", "-euo", "pipefail", "-c", commands]
            done = subprocess.run(script, cwd=site.folder, env=environment, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout + done.stderr
            as_told = _as_told(expected).fullmatch(_lines(done.stdout))
            assert as_told, f"{done.stdout}\n--- the page says ---\n{expected}"


def _as_told(text: str) -> re.Pattern[str]:
    """`...` stands for anything, also for lines."""
    return re.compile(re.escape(_lines(text)).replace(re.escape("..."), ".*"), re.DOTALL)


def _lines(text: str) -> str:
    """Tables are as wide as what stands in them."""
    return "\n".join(re.sub(r"(?<=\S) {2,}", "  ", line).rstrip() for line in text.strip().splitlines())
