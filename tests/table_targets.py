"""A document that names another table of the same database, and the former one again: of every database alike."""

from __future__ import annotations

import re

from tests.faults.kit.journeys import SHORT_LEASES
from tests.mariadb import Database as MariaDatabase
from tests.postgres_tables import Database as PostgresDatabase
from tests.site import Site
from tests.table_connectors import UNREACHABLE, apply, run, write

Database = MariaDatabase | PostgresDatabase


def ids(database: Database, table: str) -> list[int]:
    return [number for (number,) in database.run(f"SELECT id FROM {table} ORDER BY id")]


def begun(site: Site, database: Database, *, several: bool = False) -> None:
    """Rows 0 to 19 are settled in `former`; with `several`, each second one in `beside`."""
    for table in ("former", "latter", "beside"):
        database.run(f"CREATE TABLE {table} (id bigint PRIMARY KEY, name varchar(99))")
    write(site, *({"id": n, "name": "b" * (n % 2)} for n in range(20)))
    into(site, database, "former", several=several)
    assert "20 delivered" in run(site)


def into(site: Site, database: Database, table: str, *, several: bool = False) -> None:
    rules = (
        [{"name": "odd", "when": "$.name = 'b'", "to": "beside"}, {"name": "even", "when": "$.name = ''"}]
        if several
        else []
    )
    apply(site, database.sink(table, mode="upsert"), **({"rules": rules} if rules else {}))


def check_next_rows_go_to_it_and_back(site: Site, database: Database) -> None:
    begun(site, database)
    into(site, database, "latter")
    write(site, {"id": 20, "name": "second"})
    assert "1 delivered" in run(site)
    into(site, database, "former")
    write(site, {"id": 21, "name": "third"})
    assert "1 delivered" in run(site)
    into(site, database, "latter")
    write(site, {"id": 22, "name": "fourth"})
    assert "1 delivered" in run(site)
    assert (ids(database, "former"), ids(database, "latter")) == ([*range(20), 21], [20, 22])


def check_all_rows_come_into_it_when_somebody_asks(site: Site, database: Database, *, several: bool) -> None:
    begun(site, database, several=several)
    into(site, database, "latter", several=several)
    site.waybill("offsets", "set", "a", str(site.folder / "a.log"), "0", "--yes")
    assert "20 delivered" in run(site)
    assert ids(database, "latter") == [*range(0, 20, 2 if several else 1)]
    assert "nothing to move" in run(site)


def check_what_a_server_that_lagged_has_lost_is_told_and_brought_again(site: Site, database: Database) -> None:
    """Also of a file that brings nothing more. The way out is the one that the error names."""
    database.run("CREATE TABLE t (id bigint, name varchar(99))")
    apply(site, database.sink("t"))
    for number, name in enumerate(("a.log", "b.log", "c.log")):
        write(site, *({"id": 100 * number + n, "name": "x"} for n in range(20)), name=name)
    assert "60 delivered" in run(site)
    former = "CREATE TABLE former AS SELECT * FROM waybill_markers"
    database.run(former)
    write(site, *({"id": n, "name": "x"} for n in range(20, 30)))
    assert "10 delivered" in run(site)
    database.run("DELETE FROM t WHERE id BETWEEN 20 AND 29", "DELETE FROM waybill_markers")
    database.run("INSERT INTO waybill_markers SELECT * FROM former")
    write(site, {"id": 120, "name": "x"}, name="b.log")
    said = site.waybill("run", "a", "--engine", "inline", code=5)
    assert "tells of 20 rows of this partition, up to offset" in said
    assert f"{site.folder}/a.log" in said
    assert [number for number in ids(database, "t") if number in (29, 120)] == [120], "others continue"
    [place] = {*re.findall(r"what it lacks begins at offset (\d+)", said)}
    (site.folder / "offsets.json").write_text(site.waybill("offsets", "export", "a"))
    site.waybill("connectors", "delete", "a", "--yes")
    apply(site, database.sink("t"))
    site.waybill("offsets", "import", "a", "offsets.json", "--yes")
    site.waybill("offsets", "set", "a", f"{site.folder}/a.log", place, "--yes")
    assert "10 delivered" in run(site)
    assert ids(database, "t") == [*range(30), *range(100, 121), *range(200, 220)]


def check_what_a_wrong_document_planned_is_planned_again(site: Site, database: Database) -> None:
    """The receipts tell of other markers than the document names by mistake; nobody has to give a range up."""
    begun(site, database)
    apply(site, database.sink("former", mode="upsert", markers="other_markers"))
    write(site, {"id": 20, "name": "second"})
    assert "another place of the markers" in site.waybill("run", "a", "--engine", "inline", code=5)
    into(site, database, "former")
    assert "1 delivered" in run(site)
    assert ids(database, "former") == [*range(21)]


def check_a_corrected_document_counts_after_a_kill(site: Site, database: Database) -> None:
    """What the attempt that was killed has planned, and not begun to write, is not held to the wrong one."""
    site.settings.update(SHORT_LEASES)
    begun(site, database)
    database.run("ALTER TABLE former ADD price int")
    write(site, {"id": 20, "name": "second", "price": 7})
    site.fault("planned")
    run(site, code=-9)
    assert "a field that is not declared" in run(site, code=5)
    apply(site, database.sink("former", mode="upsert"), fields={"id": "int64", "name": "text", "price": "int32"})
    assert "the next run plans it by the revision of now" in run(site, code=5)
    assert "1 delivered" in run(site)
    assert ids(database, "former") == [*range(21)]
    assert [one["read"] for one in site.json("receipts", "a")["receipts"]][:2] == [1, 0]


def check_what_was_filtered_before_a_range_was_given_up_is_told(site: Site, database: Database) -> None:
    """A table keeps up to where records were written, and not which ones were left out: they count as delivered."""
    site.settings.update(SHORT_LEASES)
    begun(site, database)
    write(site, *({"id": n, "name": "x" * (n % 10 == 3)} for n in range(20, 60)))
    left_out = {"filter_out": {"pattern": "x", "fields": ["name"]}}
    apply(site, database.sink("former", mode="upsert"), transforms=[left_out])
    site.fault("executed")
    run(site, code=-9)
    assert ids(database, "former") == [n for n in range(60) if n < 20 or n % 10 != 3]
    into(site, database, "former")
    path = str(site.folder / "a.log")
    [first] = [one["begin"] for one in site.json("plan", "a")["partitions"]]
    site.waybill("offsets", "set", "a", path, str(first), "--abandon", "--yes")
    run(site)
    [gap] = site.json("gaps", "a")["gaps"]
    assert "4 records up to" in gap["reason"]
    assert "are not in the target" in gap["reason"]


def check_a_run_with_nothing_to_move_notices_what_is_gone(site: Site, database: Database) -> None:
    """It takes nothing for there, and makes nothing in its place."""
    database.run("CREATE TABLE t (id bigint, name varchar(99))")
    apply(site, database.sink("t"))
    write(site, *({"id": n, "name": "x"} for n in range(20)))
    run(site)
    database.run("ALTER TABLE waybill_markers RENAME TO elsewhere")
    assert "The target's marker tells of 0 rows" in run(site, code=5)
    database.run("ALTER TABLE elsewhere RENAME TO waybill_markers", "ALTER TABLE t RENAME TO former")
    assert "There is no such table" in run(site, code=UNREACHABLE)
    database.run("ALTER TABLE former RENAME TO t")
    assert "nothing to move" in run(site)


def check_a_run_leaves_a_marker_of_what_was_placed_by_hand(site: Site, database: Database) -> None:
    """A target that is as it was before has none, also of a file that has brought nothing since."""
    begun_with_offsets_of_another(site, database)
    database.run("DELETE FROM waybill_markers WHERE marker LIKE '%\"count\": 0,%'")
    said = run(site, code=5)
    assert "does not have the marker of this partition, which a run has left there" in said
    begun_with_offsets_of_another(site, database)
    write(site, {"id": 20, "name": "x"})
    assert "1 delivered" in run(site)
    assert ids(database, "t") == [*range(21)]


def begun_with_offsets_of_another(site: Site, database: Database) -> None:
    """Rows 0 to 19 were brought by the other one."""
    if not (site.folder / "offsets.json").exists():
        database.run("CREATE TABLE t (id bigint, name varchar(99))")
        apply(site, database.sink("t"))
        write(site, *({"id": n, "name": "x"} for n in range(20)))
        run(site)
    (site.folder / "offsets.json").write_text(site.waybill("offsets", "export", "a"))
    site.waybill("connectors", "delete", "a", "--yes")
    apply(site, database.sink("t"))
    site.waybill("offsets", "import", "a", "offsets.json", "--yes")
    assert "nothing to move" in run(site)
