"""Tables whose primary key is no column of whole numbers, read whole or by the time of the last change, in either
database: keys of each kind, stretches of them, and what may become of rows in between."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from typing import Any

import pytest

from connect_core.errors import ConfigError, DataError, Refused, Retriable, WaybillError
from connect_core.sdk.testing.driving import Follower, limit, range_of
from connect_core.sdk.values import ORIGIN, Bounds, Position, Range
from connect_core.systems.mysql import keyed_rows as keyed_in_mysql
from connect_core.systems.mysql.source_options import MysqlSourceOptions
from connect_core.systems.mysql.source_peeking import newest_rows as newest_in_mysql
from connect_core.systems.mysql.source_probing import probe_source
from connect_core.systems.postgresql import keyed_rows as keyed_in_postgresql
from connect_core.systems.postgresql.source_options import PostgresSourceOptions
from connect_core.systems.postgresql.source_peeking import newest_rows as newest_in_postgresql
from connect_core.systems.postgresql.source_probing import probe
from connect_core.systems.tables import reading
from connect_core.systems.tables.stretches import KEY_NUMBERS
from tests import mariadb, postgres_tables
from tests.changed_tables import ChangedCase, ChangedCaseOfMysql, let_seconds_pass
from tests.mysql import ONLY_MARIADB

pytestmark = pytest.mark.server
STRETCH = 37
TEXTS = [
    "a",
    "A",
    "b",
    "B",
    "ä",
    "Ä",
    "z",
    "Z",
    "ß",
    "ss",
    "_",
    "-",
    "a-b",
    "ab",
    "a b",
    "\\",
    "'",
    '"',
    "%s",
    "日",
    "\U0001f600",
    "",
]


class KeyedCase(ChangedCase):
    """The table `t` with columns of a key, and `body` and `at`."""

    def make_keyed(self, key: str, columns: str) -> None:
        kind = "timestamptz" if self.is_postgresql else "timestamp(6)"
        self.make(f"{columns}, body text, at {kind} NOT NULL, PRIMARY KEY ({key})")

    def add(self, keys: Iterable[tuple[Any, ...]]) -> None:
        with closing(self.database.connected()) as connection, connection.cursor() as writing:
            for key in keys:
                self.number += 1
                marks = ", ".join(["%s"] * len(key))
                writing.execute(f"INSERT INTO t VALUES ({marks}, %s, {self.now})", (*key, str(self.number)))
            connection.commit()

    @property
    def is_postgresql(self) -> bool:
        return not isinstance(self, ChangedCaseOfMysql)

    def changed(self, **more: Any) -> Any:
        return super().source(**more)

    def bodies(self) -> list[str]:
        return [body for (body,) in self.database.run("SELECT body FROM t")]


class KeyedCaseOfMysql(KeyedCase, ChangedCaseOfMysql):
    pass


@pytest.fixture(params=["postgresql", "mysql"])
def system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> KeyedCase:
    monkeypatch.setattr(reading, "STRETCH_ROWS", STRETCH)
    if request.param == "mysql":
        return KeyedCaseOfMysql(mariadb.Database(request.getfixturevalue("mariadb")))
    return KeyedCase(postgres_tables.Database(request.getfixturevalue("postgres_url")))


def bodies(values: Iterable[bytes | None]) -> list[str]:
    return [json.loads(value or b"{}")["body"] for value in values]


def numbers(count: int) -> list[int]:
    return [37 * one % 997 for one in range(count)]


def pairs(system: KeyedCase, count: int = 100) -> None:
    text = "text" if system.is_postgresql else "varchar(99)"
    system.make_keyed("a, b", f"a int, b {text}")
    system.add((one % 7, f"{one:03d}") for one in numbers(count))


UUIDS = [(f"{one:08x}-0000-4000-8000-{one * 7919 % 65536:012x}",) for one in numbers(100)]
OF_POSTGRESQL: dict[str, tuple[str, str, list[tuple[Any, ...]]]] = {
    "composite": ("b, a", "a int, b text", [(one % 7, f"{one}") for one in numbers(100)]),
    "text of the database": ("a", "a text", [(one + other,) for one in TEXTS for other in ("", "x", "Y", " ")]),
    "text in C": ("a", 'a text COLLATE "C"', [(one + other,) for one in TEXTS for other in ("", "x", "Y", " ")]),
    "text of two collations": (
        "a, b",
        'a text COLLATE "C", b varchar(9)',
        [(one, other) for one in TEXTS for other in ("x", "Y", "é", "")],
    ),
    "char(n)": ("a", "a char(9)", [(f"{one:x}" + " " * (one % 3),) for one in numbers(100)]),
    "uuid": ("a", "a uuid", UUIDS),
    "bytea": ("a", "a bytea", [(bytes([one % 256, one // 256, 92, 39]),) for one in numbers(100)]),
    "numeric": ("a", "a numeric", [(f"{one - 300}.{one % 10}0",) for one in numbers(100)]),
    "double precision": ("a", "a double precision", [(one / 7 - 50,) for one in numbers(100)]),
    "moments": (
        "b, a",
        "a int, b timestamptz",
        [(one % 3, f"2026-01-01 00:00:00.{one:06d}+05") for one in numbers(100)],
    ),
    "interval": ("a", "a interval", [(f"{one} hours",) for one in numbers(100)]),
    "boolean and date": (
        "a, b",
        "a boolean, b date",
        [(one % 2 == 0, f"20{one % 90 + 10}-02-{one % 28 + 1}") for one in range(100)],
    ),
    "enum": ("a, b", "a mood, b smallint", [(("sad", "ok", "glad")[one % 3], one) for one in numbers(100)]),
    "partitioned": ("a, b", "a int, b text", [(one % 7, f"{one}") for one in numbers(100)]),
    "one number beside another": ("a, b", "a bigint, b bigint", [(-one, 2**63 - 1 - one) for one in numbers(100)]),
}
_OF_MARIADB = ("text without padding", "uuid")
"""A collation, and a type, that MySQL has not."""
OF_MYSQL: dict[str, tuple[str, str, list[tuple[Any, ...]]]] = {
    "composite": ("b, a", "a int, b varchar(9)", [(one % 7, f"{one}") for one in numbers(100)]),
    "text without case": (
        "a",
        "a varchar(99) COLLATE utf8mb4_general_ci",
        [(f"{'aAbBäz'[one % 6]}{one}",) for one in numbers(100)],
    ),
    "text of bytes": (
        "a",
        "a varchar(99) COLLATE utf8mb4_bin",
        [(one + other,) for one in TEXTS for other in ("", "x", "Y")],
    ),
    "text of another set": (
        "a",
        "a varchar(99) CHARACTER SET latin1 COLLATE latin1_german2_ci",
        [(f"{'aäöoße'[one % 6]}{one}",) for one in numbers(100)],
    ),
    "text without padding": (
        "a",
        "a varchar(99) COLLATE utf8mb4_nopad_bin",
        [(f"{one // 4}" + " " * (one % 4),) for one in range(100)],
    ),
    "char(n)": ("a", "a char(9)", [(f"{one:x}",) for one in numbers(100)]),
    "binary(16)": (
        "a",
        "a binary(16)",
        [(bytes([one % 256, one // 256]) + b"\0\\'" + bytes(11),) for one in numbers(100)],
    ),
    "varbinary": ("a", "a varbinary(9)", [(bytes([one % 256, 0]) + b"\0" * (one // 256),) for one in numbers(100)]),
    "uuid": ("a", "a uuid", UUIDS),
    "decimal": ("a", "a decimal(20,3)", [(f"{one - 300}.{one % 10}",) for one in numbers(100)]),
    "float": ("a", "a float", [(one / 7 - 50,) for one in numbers(100)]),
    "moments": ("b, a", "a int, b timestamp(6)", [(one % 3, f"2026-01-01 00:00:00.{one:06d}") for one in numbers(100)]),
    "times": (
        "a, b",
        "a datetime(3), b time(1)",
        [(f"20{one % 90 + 10}-02-03 04:05:06.7", f"-1:02:{one % 60}") for one in numbers(100)],
    ),
    "enum": (
        "a, b",
        "a enum('sad','ok','glad'), b smallint",
        [(("sad", "ok", "glad")[one % 3], one) for one in numbers(100)],
    ),
    "one number beside another": (
        "a, b",
        "a bigint, b bigint unsigned",
        [(-one, 2**64 - 1 - one) for one in numbers(100)],
    ),
}


# ---------------------------------------------------------------------------------------------------- keys of each kind


@pytest.mark.parametrize("kind", OF_POSTGRESQL)
@pytest.mark.parametrize("system", ["postgresql"], indirect=True)
def test_each_row_comes_once_by_a_key_of_postgresql(system: KeyedCase, kind: str) -> None:
    system.database.run("CREATE TYPE mood AS ENUM ('sad', 'ok', 'glad')")
    key, columns, keys = OF_POSTGRESQL[kind]
    system.make_keyed(key, columns)
    if kind == "partitioned":
        partitioned(system)
    read_all(system, keys)


def partitioned(system: KeyedCase) -> None:
    system.database.run(
        "DROP TABLE t",
        "CREATE TABLE t (a int, b text, body text, at timestamptz NOT NULL, PRIMARY KEY (a, b)) PARTITION BY HASH (b)",
        *(f"CREATE TABLE t{one} PARTITION OF t FOR VALUES WITH (modulus 3, remainder {one})" for one in range(3)),
    )


@pytest.mark.parametrize("kind", [pytest.param(one, marks=[ONLY_MARIADB] * (one in _OF_MARIADB)) for one in OF_MYSQL])
@pytest.mark.parametrize("system", ["mysql"], indirect=True)
def test_each_row_comes_once_by_a_key_of_mysql(system: KeyedCase, kind: str) -> None:
    key, columns, keys = OF_MYSQL[kind]
    system.make_keyed(key, columns)
    read_all(system, keys)


def read_all(system: KeyedCase, keys: list[tuple[Any, ...]]) -> None:
    system.add(keys)
    follower = Follower(system.whole(), max_records=11)
    assert sorted(bodies(follower.run()), key=int) == [str(one + 1) for one in range(len(keys))]
    at = follower.positions[system.partition]
    assert at is not None
    assert at.incarnation == (len(keys) - 1) // STRETCH


# --------------------------------------------------------------------------------------------------------- whole tables


def test_each_run_reads_all_rows(system: KeyedCase) -> None:
    pairs(system)
    follower = Follower(system.whole())
    assert Counter(bodies(follower.run())) == Counter(system.bodies())
    system.database.run("DELETE FROM t WHERE a = 3", "UPDATE t SET body = CONCAT(body, '!') WHERE a = 4")
    system.add([(3, "new"), (9, "new")])
    again = Follower(system.whole(), follower.positions)
    assert Counter(bodies(again.run())) == Counter(system.bodies())
    assert again.gaps == []


def test_a_pass_that_was_killed_is_finished_first(system: KeyedCase) -> None:
    pairs(system)
    follower = Follower(system.whole(), {system.partition: None}, max_records=11)
    first = [body for _ in range(5) for body in bodies(follower.step())]  # of the second stretch
    again = Follower(system.whole(), follower.positions)
    values = bodies(again.run())
    assert Counter(first + values[: 100 - len(first)]) == Counter(system.bodies())
    assert Counter(values[100 - len(first) :]) == Counter(system.bodies())


def test_a_range_that_is_repeated_finds_each_row_at_its_number(system: KeyedCase) -> None:
    """Whatever was inserted and deleted beside it: what is at the place of a delivered row is that row."""
    pairs(system)
    source = system.whole()
    planned = range_of(system.partition, source.available_offsets({system.partition: None})[system.partition])
    before = numbered(source, planned)
    assert len(before) == STRETCH
    gone = sorted(before.values())[::3]
    system.database.run(f"DELETE FROM t WHERE body IN ({', '.join(map(repr, gone))})")
    system.add([(one, f"new {one}") for one in range(7)])
    after = numbered(system.whole(), planned)
    stayed = {number: body for number, body in before.items() if body not in gone}
    assert {number: body for number, body in after.items() if body in stayed.values()} == stayed
    assert set(gone).isdisjoint(after.values())


def numbered(source: Any, planned: Any) -> dict[int, str]:
    found: dict[int, str] = {}
    for batch in source.read(planned, limit()):
        offsets = batch.records.column("offset").to_pylist()
        assert offsets == sorted(offsets)
        found.update(zip(offsets, bodies(batch.records.column("value").to_pylist()), strict=True))
    return found


class Killed:
    """Reads whole tables by attempts that are killed, into a target that knows records by their coordinates."""

    def __init__(self, system: KeyedCase, chosen: random.Random) -> None:
        self.system, self.chosen = system, chosen
        self.at: Position | None = None
        self.planned: Range | None = None
        self.target: dict[tuple[str, int], str] = {}
        self.arrived: dict[str, Counter[str]] = {}
        """By pass the keys that were written."""

    def attempt(self) -> None:
        source, partition = self.system.whole(), self.system.partition
        if self.planned is None:
            bounds = source.available_offsets({partition: self.at})[partition]
            assert bounds.gaps == ()
            self.planned = range_of(partition, bounds, max_records=self.chosen.randrange(1, 9))
        planned, end = self.planned, self.planned.begin
        for batch in source.read(planned, limit()):
            offsets, keys = (batch.records.column(name).to_pylist() for name in ("offset", "key"))
            for offset, key in zip(offsets, keys, strict=True):
                if self.chosen.random() < 0.1:
                    return  # without a receipt
                self.write(planned, offset, key)
            end = batch.next_offset
        self.at, self.planned = Position(planned.incarnation, end, planned.evidence), None

    def write(self, planned: Range, offset: int, key: str) -> None:
        known = self.target.get((planned.origin, offset))
        assert known in (None, key), "a row is taken for another one"
        if known is None:
            self.target[planned.origin, offset] = key
            self.arrived.setdefault(planned.evidence["pass"], Counter())[key] += 1


@pytest.mark.parametrize("seed", range(2))
def test_each_pass_has_the_rows_that_stay_however_attempts_are_killed(
    system: KeyedCase, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Whatever is inserted, deleted and changed between two attempts."""
    chosen = random.Random(seed)
    monkeypatch.setattr(reading, "STRETCH_ROWS", 7)
    system.make_keyed("a", "a varchar(9)")
    staying = {f"{one:02d}" for one in range(40)}
    system.add((one,) for one in staying)
    killed = Killed(system, chosen)
    for _ in range(60):
        if chosen.random() < 0.5:
            system.add((f"{chosen.randrange(40):02d}{one}{chosen.randrange(10**4):04d}",) for one in "abc")
        if chosen.random() < 0.5:
            system.database.run(f"DELETE FROM t WHERE a LIKE '__{chosen.choice('abc')}%'")
        killed.attempt()
    while not killed.at or killed.planned or killed.at.offset < KEY_NUMBERS or "until" in killed.at.evidence:
        killed.attempt()
    assert killed.arrived
    for written in killed.arrived.values():
        assert max(written.values()) == 1
        assert staying <= written.keys()


def test_rows_that_a_pass_had_left_may_be_gone(system: KeyedCase) -> None:
    pairs(system)
    follower = Follower(system.whole(), {system.partition: None})
    follower.step()
    system.database.run("DELETE FROM t WHERE a > 0")
    again = Follower(system.whole(), follower.positions)
    assert Counter(bodies(again.run())) == Counter(system.bodies())
    assert again.gaps == []


def test_each_stretch_has_an_incarnation_and_an_origin_of_its_own(system: KeyedCase) -> None:
    pairs(system)
    follower = Follower(system.whole(), {system.partition: None})
    seen = []
    while follower.step():
        at = follower.positions[system.partition]
        assert at is not None
        seen.append((at.incarnation, at.evidence[ORIGIN]))
    assert [one for one, _ in seen] == [0, 1, 2]
    assert len({origin for _, origin in seen}) == 3


def test_a_table_of_exactly_one_stretch_has_one(system: KeyedCase) -> None:
    pairs(system, STRETCH)
    follower = Follower(system.whole())
    assert len(follower.run()) == STRETCH
    assert at(follower, system).incarnation == 0
    system.add([(1, "one more")])
    again = Follower(system.whole(), follower.positions)
    assert len(again.run()) == STRETCH + 1
    assert at(again, system).incarnation == 2


def at(follower: Follower, system: KeyedCase) -> Position:
    found = follower.positions[system.partition]
    assert found is not None
    return found


def test_a_key_that_gets_another_type_within_a_pass_is_told(system: KeyedCase) -> None:
    """Its rows have other numbers then. What was read whole before is no matter."""
    pairs(system)
    follower = Follower(system.whole(), {system.partition: None})
    planned = range_of(system.partition, look(system, None))
    follower.step()
    whole = Follower(system.whole())
    whole.run()
    text = "ALTER b TYPE varchar(88)" if system.is_postgresql else "MODIFY b varchar(88)"
    system.database.run(f"ALTER TABLE t {text}")
    with pytest.raises(Retriable, match="after this range was planned"):
        list(system.whole().read(planned, limit()))
    [gap] = Follower(system.whole(), follower.positions).tell()
    assert (gap.loses, gap.reason) == (True, "recreated")
    again = Follower(system.whole(), whole.positions)
    assert Counter(bodies(again.run())) == Counter(system.bodies())
    assert again.gaps == []


def test_no_error_has_a_key(system: KeyedCase, monkeypatch: pytest.MonkeyPatch) -> None:
    system.make_keyed("a", "a varchar(99)")
    system.add((f"secret {one}",) for one in range(100))
    at = Follower(system.whole(), {system.partition: None})
    at.step()
    planned = range_of(system.partition, look(system, at.positions[system.partition]))
    assert "secret" in str(planned.evidence) or "736563726574" in str(planned.evidence)
    few_numbers(monkeypatch)
    said = [refusal(system, planned)]
    system.database.run(
        "ALTER TABLE t " + ("ALTER a TYPE varchar(98)" if system.is_postgresql else "MODIFY a varchar(98)")
    )
    said.append(refusal(system, planned))
    assert not [one for one in said if "secret" in one or "736563726574" in one]


def refusal(system: KeyedCase, planned: Range) -> str:
    """What is said of a range that cannot be read."""
    with pytest.raises(WaybillError) as raised:
        list(system.whole().read(planned, limit()))
    return str(raised.value)


def look(system: KeyedCase, at: Position | None) -> Bounds:
    return system.whole().available_offsets({system.partition: at})[system.partition]


def test_two_keys_with_one_number_are_not_in_one_stretch(system: KeyedCase, monkeypatch: pytest.MonkeyPatch) -> None:
    few_numbers(monkeypatch)
    pairs(system)
    follower = Follower(system.whole())
    assert Counter(bodies(follower.run())) == Counter(system.bodies())
    assert at(follower, system).incarnation > 20


def few_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    for keyed in (keyed_in_postgresql, keyed_in_mysql):
        monkeypatch.setattr(keyed, "KEY_DIGITS", 1)


@pytest.mark.parametrize("most", [1, 5, 37])
def test_a_row_with_the_number_of_another_one_that_comes_late_stops_the_connector(
    system: KeyedCase, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    few_numbers(monkeypatch)
    monkeypatch.setattr(reading, "STRETCH_ROWS", 1)
    pairs(system, 5)
    planned = range_of(system.partition, look(system, None), max_records=most)
    first = "SELECT a, b FROM t ORDER BY a, b LIMIT 1"
    [(a, b)] = system.database.run(first)
    system.add((a - 1, f"{b} {one}") for one in range(30))
    with pytest.raises(DataError, match="Two rows have the number") as raised:
        list(system.whole().read(planned, limit()))
    assert "give one of them another key" in raised.value.next_step


# --------------------------------------------------------------------------------------------------------- changed rows


def test_a_changed_row_comes_again_and_the_others_do_not(system: KeyedCase) -> None:
    pairs(system)
    follower = Follower(system.changed(), max_records=11)
    assert Counter(read(follower)) == Counter(system.bodies())
    let_seconds_pass()
    system.database.run(f"UPDATE t SET body = 'changed', at = {system.now} WHERE a = 3 AND b < '1'")
    system.add([(9, "new")])
    again = Follower(system.changed(), follower.positions)
    assert Counter(read(again)) == Counter(one for one in system.bodies() if one in ("changed", "101"))
    assert Follower(system.changed(), again.positions).run() == []
    assert (follower.gaps, again.gaps) == ([], [])


def read(follower: Follower) -> list[str]:
    return [(value or b"").decode() for value in follower.run()]


def test_rows_that_change_between_stretches_come_with_a_later_window(system: KeyedCase) -> None:
    pairs(system)
    follower = Follower(system.changed(), {system.partition: None})
    first = [(value or b"").decode() for value in follower.step()]
    assert len(first) == STRETCH
    let_seconds_pass()
    system.database.run(f"UPDATE t SET body = CONCAT(body, '!'), at = {system.now} WHERE a IN (0, 3, 6)")
    again = Follower(system.changed(), follower.positions, max_records=11)
    values = read(again)
    assert max(Counter(first + values).values()) == 1
    changed = {one for one in system.bodies() if one.endswith("!")}
    assert set(system.bodies()) - set(first + values) == set()
    assert changed <= set(values)


def test_all_that_a_window_had_left_may_have_changed(system: KeyedCase) -> None:
    pairs(system)
    follower = Follower(system.changed(), {system.partition: None})
    follower.step()
    let_seconds_pass()
    system.database.run(f"UPDATE t SET body = CONCAT(body, '!'), at = {system.now}")
    again = Follower(system.changed(), follower.positions)
    assert Counter(read(again)) == Counter(system.bodies())
    assert again.gaps == []


# ------------------------------------------------------------------------------------------------------ what is refused


def test_new_rows_alone_need_numbers(system: KeyedCase) -> None:
    pairs(system)
    with pytest.raises(ConfigError, match="not one column of whole numbers") as raised:
        Follower(system.whole(bulk=False)).run()
    assert "timestamp, or bulk, which take any key" in raised.value.next_step


@pytest.mark.parametrize(
    ("of", "statements", "why"),
    [
        ("postgresql", ["CREATE TABLE t (a text UNIQUE, body text)"], "no primary key"),
        ("postgresql", ["CREATE TABLE t (a int4range PRIMARY KEY)"], "a is int4range"),
        ("postgresql", ["CREATE TABLE t (a text PRIMARY KEY)", "CREATE TABLE child () INHERITS (t)"], "inherit"),
        ("mysql", ["CREATE TABLE t (a varchar(9), body text, UNIQUE (a))"], "no primary key"),
        ("mysql", ["CREATE TABLE t (a varchar(99), PRIMARY KEY (a(9)))"], "has a part of a column"),
        ("mysql", ["CREATE TABLE t (a text, PRIMARY KEY (a(9)))"], "has a part of a column"),
    ],
)
def test_what_is_refused(request: pytest.FixtureRequest, of: str, statements: list[str], why: str) -> None:
    database: Any = (
        mariadb.Database(request.getfixturevalue("mariadb"))
        if of == "mysql"
        else postgres_tables.Database(request.getfixturevalue("postgres_url"))
    )
    system = KeyedCaseOfMysql(database) if of == "mysql" else KeyedCase(database)
    database.run("DROP TABLE t", *statements)
    with pytest.raises(ConfigError, match=why):
        Follower(system.whole()).run()
    found = (probe_source if of == "mysql" else probe)({**database.options, "table": "t", "bulk": True})
    assert [one.ok for one in found].count(False) == 1


@pytest.mark.parametrize("system", ["postgresql"], indirect=True)
def test_a_collation_that_takes_texts_for_equal_is_refused(system: KeyedCase) -> None:
    """Of a server without ICU, which alone makes such collations: there the catalog is made to say it."""
    system.database.run('CREATE COLLATION bare FROM "C"')
    system.make_keyed("a, b", "a int, b text COLLATE bare")
    system.database.run("UPDATE pg_collation SET collisdeterministic = false WHERE collname = 'bare'")
    with pytest.raises(ConfigError, match="Column b of the primary key has a collation that is not deterministic"):
        Follower(system.whole()).run()


@pytest.mark.parametrize("system", ["mysql"], indirect=True)
def test_a_server_that_computes_no_digests_is_refused(system: KeyedCase, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the number of each row were NULL, and no row would come."""
    pairs(system)
    monkeypatch.setattr("connect_core.systems.mysql.source_catalog.DIGEST", "NULLIF(SHA2({}, 256), '')")
    assert len(Follower(system.whole()).run()) == 100
    monkeypatch.setattr("connect_core.systems.mysql.source_catalog.DIGEST", "NULLIF({}, '')")
    with pytest.raises(Refused, match="computes no SHA2"):
        Follower(system.whole()).run()


@pytest.mark.parametrize("system", ["postgresql"], indirect=True)
def test_a_column_that_the_key_only_includes_is_no_part_of_the_number(system: KeyedCase) -> None:
    system.make("a text, body text, at timestamptz NOT NULL, PRIMARY KEY (a) INCLUDE (body)")
    system.add([("one",), ("two",)])
    source = system.whole()
    planned = range_of(system.partition, source.available_offsets({system.partition: None})[system.partition])
    before = list(numbered(source, planned))
    system.database.run("UPDATE t SET body = body || '!'")
    assert list(numbered(system.whole(), planned)) == before


# -------------------------------------------------------------------------------------------------------- what is shown


def test_what_a_probe_says(system: KeyedCase) -> None:
    pairs(system)
    given = {**system.database.options, "table": "t", "bulk": True}
    found = [one.what for one in (probe if system.is_postgresql else probe_source)(given)]
    assert "table t is there, its rows are distinguished by their keys: a, b" in found


def test_the_last_rows_by_their_keys_are_shown(system: KeyedCase) -> None:
    pairs(system)
    given = {**system.database.options, "table": "t", "bulk": True}
    if system.is_postgresql:
        found = newest_in_postgresql(PostgresSourceOptions.model_validate(given), 2)
    else:
        found = newest_in_mysql(MysqlSourceOptions.model_validate(given), 2)
    assert all(0 < one < KEY_NUMBERS for one in found.column("offset").to_pylist())
    last = system.database.run("SELECT a, b FROM t ORDER BY a DESC, b DESC LIMIT 2")[::-1]
    assert [json.loads(key) for key in found.column("key").to_pylist()] == [{"a": a, "b": b} for a, b in last]
