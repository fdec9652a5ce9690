"""A target that has lost what was settled: a file of SQLite that a backup was put in the place of, with the command."""

from __future__ import annotations

import re
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from connect_core.ledger import upgrade
from tests.site import Site
from tests.sqlite_files import Database
from tests.table_connectors import UNREACHABLE, apply, run, write

LOST = 5
SINK = {"sql": {"url": "sqlite:///shop.db", "table": "t", "create_table": True}}
NAMES = {"a.log": 0, "b.log": 1_000}
"""Files, and the first id in each."""


def database(site: Site, *statements: str) -> list[Any]:
    """The rows of the last statement."""
    return Database(site.folder / "shop.db").run(*statements)


def feed(site: Site, begin: int, end: int, *names: str) -> None:
    for name in names or NAMES:
        write(site, *({"id": NAMES[name] + n, "name": "x"} for n in range(begin, end)), name=name)


def backup(site: Site, name: str = "shop.bak") -> None:
    shutil.copy(site.folder / "shop.db", site.folder / name)


def restore(site: Site, name: str = "shop.bak") -> None:
    shutil.copy(site.folder / name, site.folder / "shop.db")


def ids(site: Site) -> list[int]:
    return [number for (number,) in database(site, "SELECT id FROM t ORDER BY id")]


def ends(site: Site, lines: int) -> dict[str, str]:
    """By file where so many of its lines end."""
    whole = {name: (site.folder / name).read_bytes().splitlines(keepends=True) for name in NAMES}
    return {name: str(sum(map(len, read[:lines]))) for name, read in whole.items()}


def all_to(end: int) -> list[int]:
    return sorted(begin + n for begin in NAMES.values() for n in range(end))


def taken_over(site: Site) -> None:
    """The connector is made anew, and goes on where it was."""
    (site.folder / "offsets.json").write_text(site.waybill("offsets", "export", "a"))
    site.waybill("connectors", "delete", "a", "--yes")
    apply(site, SINK)
    site.waybill("offsets", "import", "a", "offsets.json", "--yes")


def places(site: Site, said: str) -> dict[str, str]:
    """By file what the error says it is to be set to."""
    found = re.findall(rf"{re.escape(str(site.folder))}/(\w+\.log): (?:(?!\.log: ).)*?begins at offset (\d+)", said)
    return dict(found)


def brought_again(site: Site, said: str) -> None:
    """The way out, word for word."""
    found = places(site, said)
    taken_over(site)
    for name, place in found.items():
        site.waybill("offsets", "set", "a", str(site.folder / name), place, "--yes")
    run(site)


def test_rows_of_a_target_that_was_put_back_come_again_from_where_the_connector_began(bare_site: Site) -> None:
    """It was made anew with the offsets of another one, and its first rows are lost: it began there, not at 0."""
    feed(bare_site, 0, 100)
    apply(bare_site, SINK)
    run(bare_site)
    taken_over(bare_site)
    backup(bare_site)
    feed(bare_site, 100, 150)
    run(bare_site)
    restore(bare_site)
    said = run(bare_site, code=LOST)
    assert places(bare_site, said) == ends(bare_site, 100)
    assert said.count("export the offsets") == 1, "what helps is said once"
    brought_again(bare_site, said)
    assert ids(bare_site) == all_to(150)


def test_of_what_another_ledger_delivered_it_is_said_that_nobody_knows(bare_site: Site) -> None:
    """It was placed by an import, and names that offset, not the begin; it does not know the other one's markers."""
    feed(bare_site, 0, 100)
    apply(bare_site, SINK)
    run(bare_site)
    (bare_site.folder / "offsets.json").write_text(bare_site.waybill("offsets", "export", "a"))
    site = replace(bare_site, database_url=f"sqlite:///{bare_site.folder}/other.db")
    upgrade(site.database_url)
    apply(site, SINK)
    site.waybill("offsets", "import", "a", "offsets.json", "--yes")
    backup(site)
    feed(site, 100, 150)
    run(site)
    restore(site)
    said = run(site, code=LOST)
    assert places(site, said) == ends(site, 100)
    assert "of what was delivered before that by another one the target may lack more" in said
    brought_again(site, said)
    assert ids(site) == all_to(150)


def test_a_backup_of_before_offsets_were_taken_over_is_noticed_of_each_partition(bare_site: Site) -> None:
    """Also of one that has brought nothing since. The former connector's marker says where its rows end."""
    feed(bare_site, 0, 50)
    apply(bare_site, SINK)
    run(bare_site)
    backup(bare_site)
    feed(bare_site, 50, 100)
    run(bare_site)
    taken_over(bare_site)
    assert "nothing to move" in run(bare_site)
    feed(bare_site, 100, 120, "a.log")
    assert "20 delivered" in run(bare_site)
    restore(bare_site)
    said = run(bare_site, code=LOST)
    assert places(bare_site, said) == ends(bare_site, 50)
    planned = {one["partition"].rpartition("/")[2]: one for one in bare_site.json("plan", "a")["partitions"]}
    assert {name: one["state"] for name, one in planned.items()} == dict.fromkeys(NAMES, "quarantined")
    assert all(f"begins at offset {end}" in planned[name]["reason"] for name, end in ends(bare_site, 50).items())
    brought_again(bare_site, said)
    assert ids(bare_site) == sorted({*all_to(100), *range(100, 120)})
    assert "nothing to move" in run(bare_site)


def test_of_two_backups_the_later_one_is_put_back_behind_the_earlier_one(bare_site: Site) -> None:
    """The connector that was made for the earlier one begins before what the later one has. Who wanted it to deliver
    that again, by an offset of his own, may have it so: the error names both."""
    feed(bare_site, 0, 50)
    apply(bare_site, SINK)
    run(bare_site)
    backup(bare_site, "early.bak")
    feed(bare_site, 50, 100)
    run(bare_site)
    backup(bare_site, "late.bak")
    restore(bare_site, "early.bak")
    brought_again(bare_site, run(bare_site, code=LOST))
    assert ids(bare_site) == all_to(100)
    feed(bare_site, 100, 120)
    run(bare_site)
    restore(bare_site, "late.bak")
    said = run(bare_site, code=LOST)
    assert places(bare_site, said) == ends(bare_site, 50)
    for end in ends(bare_site, 100).values():
        assert f"there is what a deleted connector of this name brought, up to offset {end}: set it to that" in said
    brought_again(bare_site, said.replace("begins at offset", "began at offset").replace("brought, up to", "begins at"))
    assert ids(bare_site) == all_to(120)


def test_what_a_person_passed_over_is_not_brought_by_the_way_out(bare_site: Site) -> None:
    feed(bare_site, 0, 50)
    apply(bare_site, SINK)
    run(bare_site)
    backup(bare_site)
    feed(bare_site, 50, 150)
    for name, end in ends(bare_site, 100).items():
        bare_site.waybill("offsets", "set", "a", str(bare_site.folder / name), end, "--yes")
    run(bare_site)
    restore(bare_site)
    brought_again(bare_site, run(bare_site, code=LOST))
    assert ids(bare_site) == [n for n in all_to(150) if not 50 <= n % 1_000 < 100]


def test_the_offset_that_the_error_names_is_taken(bare_site: Site) -> None:
    """Where the rows end within a range, the marker says where the last record begins: the next one is named."""
    feed(bare_site, 0, 50, "a.log")
    apply(bare_site, SINK)
    run(bare_site)
    lines = (bare_site.folder / "a.log").read_bytes().splitlines(keepends=True)
    inside = sum(map(len, lines[:29])) + 1
    changed = f"UPDATE waybill_markers SET marker = json_set(marker, '$.count', 30, '$.position', {inside})"
    database(bare_site, "DELETE FROM t WHERE id >= 30", changed)
    end = sum(map(len, lines[:30]))
    assert f"what it lacks begins at offset {end} [partition {bare_site.folder}/a.log" in run(bare_site, code=LOST)
    taken_over(bare_site)
    bare_site.waybill("offsets", "set", "a", str(bare_site.folder / "a.log"), str(end), "--yes")
    run(bare_site)
    assert ids(bare_site) == [*range(50)]


def test_what_was_read_of_a_former_file_no_offset_brings_again(bare_site: Site) -> None:
    """The log was rotated since: all of the present one comes, and the error says what does not."""
    feed(bare_site, 0, 50, "a.log")
    apply(bare_site, SINK, source={"file": {"path": "*.log", "rotation_quiet_s": 0}})
    run(bare_site)
    backup(bare_site)
    feed(bare_site, 50, 60, "a.log")
    run(bare_site)
    (bare_site.folder / "a.log").rename(bare_site.folder / "a.log.1")
    feed(bare_site, 60, 70, "a.log")
    run(bare_site)
    restore(bare_site)
    said = run(bare_site, code=LOST)
    assert "what it lacks begins at offset 0; what it lacks of the file" in said
    assert "was read under this name before, no offset brings again" in said
    taken_over(bare_site)
    bare_site.waybill("offsets", "set", "a", str(bare_site.folder / "a.log"), "0", "--yes")
    run(bare_site)
    assert ids(bare_site) == [*range(50), *range(60, 70)]


@pytest.mark.parametrize(
    ("lost", "code", "words"),
    [
        ("DROP TABLE waybill_markers", LOST, "The target's marker tells of 0 rows"),
        ("DROP TABLE t", UNREACHABLE, "There is no such table"),
        ("DELETE FROM waybill_markers; DROP TABLE t", UNREACHABLE, "There is no such table"),
        ("", UNREACHABLE, "it is not there"),
        ("anew", LOST, "The target's marker tells of 0 rows"),
    ],
)
def test_a_run_with_nothing_to_move_notices_what_is_gone(bare_site: Site, lost: str, code: int, words: str) -> None:
    feed(bare_site, 0, 20)
    apply(bare_site, SINK)
    run(bare_site)
    if lost in ("", "anew"):
        (bare_site.folder / "shop.db").unlink()
    if lost == "anew":
        database(bare_site, "CREATE TABLE t (id BIGINT, name TEXT)")
    elif lost:
        database(bare_site, *lost.split("; "))
    assert words in run(bare_site, code=code)
    assert words in run(bare_site, code=code), "and it makes nothing in its place"


def test_a_run_with_nothing_to_move_does_without_a_database_that_does_not_answer(bare_site: Site) -> None:
    feed(bare_site, 0, 20)
    apply(bare_site, {"sql": {**SINK["sql"], "lock_timeout_s": 1}})
    run(bare_site)
    with closing(sqlite3.connect(bare_site.folder / "shop.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert "nothing to move" in run(bare_site)
