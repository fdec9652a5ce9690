"""Dead letters that are encrypted, while workers and drivers are killed between a reject and its settle, and while they
are replayed: each is kept once, opens with its key, and is nowhere in plain (delivery rule 14).
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from connect_core.pipeline.key_ids import key_id_of
from tests.faults.kit.journeys import SHORT_LEASES, TRY_AGAIN, lines_of
from tests.faults.kit.processes import ended
from tests.faults.rows import FaultRow
from tests.site import Site

pytestmark = pytest.mark.fault

CANARY = "kanarien"
FIRST, SECOND = "the first key, of 2026", "the second key, of 2027"
LINES = [json.dumps({"n": n if n % 3 else f"{CANARY} {n}", "pad": "x" * 40}).encode() for n in range(4_000)]
BAD = [line for line in LINES if CANARY.encode() in line]
GOOD = [line for line in LINES if CANARY.encode() not in line]
ATTEMPTS = 6
KILLED = (-9, 137, *TRY_AGAIN)


@dataclass
class Oven:
    """A file → a file, in several ranges; every third line is a dead letter."""

    site: Site

    def __post_init__(self) -> None:
        self.site.settings.update(SHORT_LEASES)
        (self.site.folder / "in.log").write_bytes(b"".join(line + b"\n" for line in LINES))
        (self.site.folder / "keys").write_text(f"first={FIRST}\nsecond={SECOND}\n")
        self.apply()

    def apply(self, name: str = "first", secret: str = FIRST, n: str = "int64") -> None:
        encrypt = {"key": f"${{file:{self.site.folder}/keys#{name}}}", "key_id": key_id_of(secret)}
        self.site.apply(
            "oven",
            {
                "source": {"file": {"path": "in.log"}},
                "sink": {"file": {"path": "out.log"}},
                "parse": {"format": "json", "fields": {"n": n, "pad": "text"}},
                "errors": {"tolerance": "all", "encrypt": encrypt},
                "limits": {"range_records": 900},
                "engine": "inline",
            },
        )

    def until_done(self, *words: str) -> None:
        codes: list[int] = []
        while not codes or codes[-1]:
            assert len(codes) < ATTEMPTS, codes
            codes.append(ended(self.site.start(*words), limit_s=120))
            assert codes[-1] in (0, *KILLED), codes

    def kept(self) -> Counter[bytes]:
        """What the open letters hold, opened with their keys."""
        path = self.site.folder / "exported.jsonl"
        path.unlink(missing_ok=True)
        self.site.waybill("dead-letters", "export", "oven", "--to", str(path))
        return Counter(json.loads(line)["payload"]["text"].encode() for line in path.read_text().splitlines())

    def letters(self, state: str = "open") -> list[dict[str, Any]]:
        words = ("--state", state, "--last", "10000")
        found: list[dict[str, Any]] = self.site.json("dead-letters", "list", "oven", *words)["dead_letters"]
        return found

    def out(self) -> list[Path]:
        return [path for path in self.site.folder.glob("out.log*") if ".unsettled-" not in path.name]

    def in_plain(self) -> list[Path]:
        files = [path for path in self.site.home.rglob("*") if path.is_file()]
        return [path for path in files if CANARY.encode() in path.read_bytes()]


@pytest.mark.parametrize("step", ["before-receipt", "batch-written", "executed", "settled", "planned"])
def test_a_run_killed_between_a_reject_and_its_settle_keeps_each_letter_once(
    bare_site: Site, row: FaultRow, step: str
) -> None:
    row.describe(f"SIGKILL at {step}, dead letters encrypted, then another key", where="file → file", database="SQLite")
    oven = Oven(bare_site)
    bare_site.fault(step)
    assert ended(bare_site.start("run", "oven"), limit_s=120) in KILLED
    row.strikes()
    settled = len(oven.letters())
    oven.apply("second", SECOND)
    oven.until_done("run", "oven")
    row.moves_again()
    kept = oven.kept()
    row.lost, row.repeated = sum((Counter(BAD) - kept).values()), sum((kept - Counter(BAD)).values())
    assert (row.lost, row.repeated) == (0, 0)
    assert lines_of(bare_site.folder / "out.log") == GOOD
    keys = Counter(one["encrypted_with"] for one in oven.letters())
    assert keys == Counter({key_id_of(FIRST): settled, key_id_of(SECOND): len(BAD) - settled})
    assert oven.in_plain() == []
    row.reordered = row.duplicates = 0


@pytest.mark.parametrize("step", ["batch-written", "lane-started", "before-receipt", "executed", "settled"])
@pytest.mark.fault(costly=True)
def test_a_replay_of_encrypted_letters_killed_at_a_step_is_finished_by_the_same_command(
    bare_site: Site, row: FaultRow, step: str
) -> None:
    row.describe(f"SIGKILL of a replay of encrypted letters at {step}", where="file → file", database="SQLite")
    oven = Oven(bare_site)
    oven.until_done("run", "oven")
    oven.apply("second", SECOND, n="text")
    bare_site.fault(step)
    replay = ("dead-letters", "replay", "oven", "--yes")
    assert ended(bare_site.start(*replay), limit_s=120) in KILLED
    row.strikes()
    oven.until_done(*replay)
    row.moves_again()
    found = Counter(line for path in oven.out() for line in lines_of(path)) - Counter(GOOD)
    wanted = Counter(BAD)
    row.lost, row.repeated = sum((wanted - found).values()), sum((found - wanted).values())
    assert (row.lost, row.repeated) == (0, 0)
    assert (len(oven.letters()), len(oven.letters("replayed"))) == (0, len(BAD))
    assert bare_site.json("verify", "oven", "--stream", "all")["differs"] == 0
    assert oven.in_plain() == []
    row.reordered = row.duplicates = 0
