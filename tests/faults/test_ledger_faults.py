"""The ledger's database fails a run: taken over in between, killed, cut off, answers lost, clocks stepped, crowded.

From file to file by the inline engine, so that nothing but the database and its runs is there to fail.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import sqlalchemy as sa

from connect_core import stack
from connect_core.ledger import Ledger
from tests.contract.ledger.cut_line import CutLine
from tests.faults.copying import NAME, Copying
from tests.faults.kit.checker import EXACT, Account, Span, account
from tests.faults.kit.journeys import ATTEMPTS, TRY_AGAIN
from tests.faults.kit.processes import go_on, stopped_at, wait_for
from tests.faults.rows import FaultRow
from tests.site import Site, new_site

pytestmark = pytest.mark.fault

COSTLY = pytest.mark.fault(costly=True)
WHERE = "file → file"
LIMIT_S = 120.0
SHORT = {
    "WAYBILL_QUANTUM_S": "2s",
    "WAYBILL_LEASE_TTL_S": "6s",
    "WAYBILL_LEASE_MARGIN_S": "1s",
    "WAYBILL_SEND_TIMEOUT_S": "1s",
}
"""For rows in which nothing but a whole time to live ends a lease."""

POSTGRESQL = pytest.param("PostgreSQL", marks=pytest.mark.server)
DATABASES = ["SQLite", POSTGRESQL]


@pytest.fixture
def url(request: pytest.FixtureRequest, tmp_path: Path, database: str) -> str:
    """Of a database of its own, without tables."""
    if database == "SQLite":
        return f"sqlite:///{tmp_path}/.waybill/ledger.db"
    made: str = request.getfixturevalue("new_database")(request.getfixturevalue("postgres_url"))
    return made


@pytest.fixture
def copying(url: str, tmp_path: Path) -> Copying:
    """A connector whose log has 20,000 lines: two ranges of several batches."""
    made = Copying(new_site(tmp_path, url, None))
    made.apply(limits={"range_records": 12_000})
    made.append(20_000)
    return made


@pytest.fixture
def beside(url: str) -> Iterator[sa.Engine]:
    """The test's own way into the database."""
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    yield engine
    engine.dispose()


@contextmanager
def standing_before_settle(copying: Copying) -> Iterator[subprocess.Popen[str]]:
    """A run whose driver stands still with a receipt in its hands."""
    copying.site.fault("executed", "stop")
    with copying.start() as run:
        try:
            assert stopped_at(copying.site, "executed", run) == run.pid
            yield run
        finally:
            run.kill()


def exit_code(run: subprocess.Popen[str]) -> tuple[int, str]:
    """With what it said."""
    try:
        out, err = run.communicate(timeout=LIMIT_S)
    finally:
        run.kill()
    return run.returncode, out + err


def waiting_for_a_lock(beside: sa.Engine) -> bool:
    query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    with beside.connect() as connection:
        return bool(connection.execute(sa.text(query)).scalar_one())


# ------------------------------------------------------------------------------------------- taken over in the middle


@pytest.mark.fault(costly=True)
@pytest.mark.parametrize("database", DATABASES)
def test_a_settle_with_a_take_over_in_between_is_fenced(
    copying: Copying, beside: sa.Engine, database: str, row: FaultRow
) -> None:
    """The take-over has begun and is not committed when the settle begins: the settle waits for it and is too late."""
    row.describe("settle while a take-over is being committed", where=WHERE, database=database)
    with standing_before_settle(copying) as run, beside.connect() as taking_over:
        if database == "SQLite":
            taking_over.exec_driver_sql("BEGIN IMMEDIATE")
        taking_over.execute(sa.text("UPDATE leases SET epoch = epoch + 1, seq = seq + 1, holder = 'another'"))
        row.strikes()
        go_on(run.pid)
        if database != "SQLite":  # a SQLite file tells nobody who waits for it
            wait_for(lambda: waiting_for_a_lock(beside), "a settle that waits")
        taking_over.commit()
        code, told = exit_code(run)
    assert (code, "newer" in told) == (4, True), told
    assert copying.receipts() == []
    copying.run()
    row.moves_again()
    copying.check(row)


# ------------------------------------------------------------------------------------------- the database is not there


@pytest.mark.server
@pytest.mark.parametrize("database", ["PostgreSQL"])
def test_the_database_is_killed_in_the_middle_of_settle(
    copying: Copying, beside: sa.Engine, database: str, row: FaultRow, worker_folder: Path
) -> None:
    """Behind its first statements, before its last: none of them may stand."""
    row.describe("SIGKILL of the database in the middle of settle", where=WHERE, database=database)
    home = worker_folder / "postgresql" / ".waybill"
    with standing_before_settle(copying) as run:
        holding = beside.connect()
        holding.execute(sa.text("LOCK TABLE offsets IN EXCLUSIVE MODE"))
        go_on(run.pid)
        wait_for(lambda: waiting_for_a_lock(beside), "a settle that waits")
        row.strikes()
        stack.kill(home, stack.POSTGRESQL)
        code, told = exit_code(run)
        holding.invalidate()
        stack.up(home, parts=(stack.POSTGRESQL,), supervise=False)
    assert code == 3, told
    assert copying.receipts() == []
    copying.run()
    row.moves_again()
    copying.check(row)


@pytest.fixture
def line(url: str) -> Iterator[CutLine]:
    """Between the connector's runs and PostgreSQL. The path of a socket must be short."""
    [server_folder] = parse_qs(urlsplit(url).query)["host"]
    folder = Path(tempfile.mkdtemp(prefix="cut-"))
    made = CutLine(folder, server_folder)
    yield made
    made.close()
    shutil.rmtree(folder)


@dataclass(frozen=True)
class Point:
    """A transaction of a run, known by a statement that only it has; `codes` of the run whose COMMIT is cut before and
    behind. A settle is asked for again at once."""

    statement: str
    codes: tuple[int, int]


POINTS = {
    "taking a lease": Point("INSERT INTO leases", (1, 1)),
    "planned": Point("INSERT INTO ranges", (1, 1)),
    "settle": Point("UPDATE ranges SET state='settled'", (0, 0)),
}


@pytest.mark.server
@pytest.mark.parametrize("database", ["PostgreSQL"])
@pytest.mark.parametrize("where", ["before", "behind"])
@pytest.mark.parametrize("point", POINTS)
def test_the_line_is_cut_at_a_commit(
    copying: Copying, line: CutLine, url: str, point: str, where: str, row: FaultRow
) -> None:
    """Before it: nothing of the transaction stands. Behind it: all of it does, and nobody knows."""
    lost = "its answer lost" if where == "behind" else "the COMMIT lost"
    row.describe(f"connection cut at the COMMIT of {point}, {lost}", where=WHERE, database="PostgreSQL")
    direct = copying.site.database_url
    copying.site.settings |= SHORT
    copying.site.database_url = f"{url.partition('?')[0]}?host={line.folder}"
    line.cut(where, POINTS[point].statement)  # type: ignore[arg-type]
    run = copying.start()
    assert line.struck.wait(LIMIT_S)
    row.strikes()
    code, told = exit_code(run)
    copying.site.database_url = direct
    assert code == POINTS[point].codes[where == "behind"], told
    copying.append(1_000)
    copying.run()
    row.moves_again()
    copying.check(row)


# --------------------------------------------------------------------------------------------------- clocks that differ

STEP_CLOCK = """
CREATE SCHEMA stepped;
CREATE TABLE stepped.clock (step interval NOT NULL);
INSERT INTO stepped.clock VALUES ('0');
CREATE FUNCTION stepped.step() RETURNS interval LANGUAGE sql STABLE AS 'SELECT step FROM stepped.clock';
"""
CLOCKS = ("now", "clock_timestamp", "statement_timestamp", "transaction_timestamp")


def make_the_clock_steppable(beside: sa.Engine) -> None:
    """Every session of this database calls clocks of ours, which stand before the server's own on its search path."""
    with beside.begin() as connection:
        connection.exec_driver_sql(STEP_CLOCK)
        for clock in CLOCKS:
            connection.exec_driver_sql(
                f"CREATE FUNCTION stepped.{clock}() RETURNS timestamptz LANGUAGE sql STABLE"
                f" AS 'SELECT pg_catalog.{clock}() + stepped.step()'"
            )
        name = connection.execute(sa.text("SELECT current_database()")).scalar_one()
        connection.exec_driver_sql(f"ALTER DATABASE {name} SET search_path = stepped, pg_catalog, public")


def step_the_clock(beside: sa.Engine, seconds: int) -> None:
    with beside.begin() as connection:
        connection.execute(sa.text(f"UPDATE stepped.clock SET step = '{seconds} s'"))
        for clock in CLOCKS:
            shown = connection.execute(sa.text(f"SELECT extract(epoch FROM {clock}() - pg_catalog.{clock}())"))
            assert round(shown.scalar_one()) == seconds


@pytest.mark.server
@pytest.mark.parametrize("database", ["PostgreSQL"])
@pytest.mark.parametrize("seconds", [60, -60])
@pytest.mark.fault(costly=True)
def test_the_clock_of_the_database_is_stepped_by_a_minute(
    copying: Copying, beside: sa.Engine, database: str, seconds: int, row: FaultRow
) -> None:
    """While one run stands still and another waits for its lease: that one must not believe that it is over."""
    row.describe(f"clock of the database stepped by {seconds:+} s", where=WHERE, database=database)
    make_the_clock_steppable(beside)
    with standing_before_settle(copying) as run, copying.start() as challenger:
        read_until(challenger, "waiting for")
        step_the_clock(beside, seconds)
        row.strikes()
        go_on(run.pid)
        goes_on_unharmed(run, challenger)
    row.moves_again()
    copying.check(row)


@pytest.mark.parametrize("database", DATABASES)
@pytest.mark.fault(costly=True)
def test_the_clocks_of_two_drivers_differ_by_an_hour(copying: Copying, database: str, row: FaultRow) -> None:
    """As between hosts: the challenger measures the silence on its own clock."""
    row.describe("clocks of two drivers differ by an hour", where=WHERE, database=database)
    ahead = ["unshare", "--time", "--boottime", "3600", "--monotonic", "3600", "--"]
    if subprocess.run([*ahead, "true"], capture_output=True).returncode:
        pytest.skip("this kernel or account makes no time namespaces")
    with standing_before_settle(copying) as run, copying.site.start(*RUN, before=ahead) as challenger:
        row.strikes()
        read_until(challenger, "waiting for")
        go_on(run.pid)
        goes_on_unharmed(run, challenger)
    row.moves_again()
    copying.append(1_000)
    copying.site.start(*RUN, before=ahead).communicate(timeout=LIMIT_S)
    copying.check(row)


RUN = ("run", NAME, "--engine", "inline")


def goes_on_unharmed(run: subprocess.Popen[str], challenger: subprocess.Popen[str]) -> None:
    """The run ends well. The challenger sees it live (4), or sees its lease let go and finds nothing left to do."""
    code, told = exit_code(run)
    assert code == 0, told
    code, told = exit_code(challenger)
    assert code in (0, 4), told
    assert "taking over" not in told


def read_until(run: subprocess.Popen[str], words: str) -> None:
    assert run.stderr is not None
    told = []
    for said in run.stderr:
        told.append(said)
        if words in said:
            return
    raise AssertionError(f"it never said {words!r}: {''.join(told)}")


# ------------------------------------------------------------------------------------------------ many on one database


@pytest.mark.timeout(600)  # up to twenty runs, each with a process of its own for the work
@pytest.mark.parametrize(
    ("connectors", "at_once"), [(6, 3), pytest.param(20, 2, marks=COSTLY), pytest.param(20, 5, marks=COSTLY)]
)
@pytest.mark.fault(costly=True)
def test_connectors_share_one_sqlite_file(bare_site: Site, connectors: int, at_once: int, row: FaultRow) -> None:
    row.describe(f"{connectors} connectors, {at_once} drivers at once, on one file", where=WHERE, database="SQLite")
    names = [f"copy-{number:02}" for number in range(connectors)]
    feed(bare_site, names)
    row.strikes()
    with ThreadPoolExecutor(at_once) as drivers:
        told = [said for saids in drivers.map(lambda name: run_until_done(bare_site, name), names) for said in saids]
    row.moves_again()
    assert [said for said in told if "locked" in said] == []
    assert settled_up(bare_site, names).into(row) == EXACT


def run_until_done(site: Site, name: str) -> list[str]:
    """What its runs said. On a crowded machine a lane may be late and killed: the next run goes on."""
    told: list[str] = []
    code = 1
    while code:
        assert code in TRY_AGAIN, told
        assert len(told) < ATTEMPTS, told
        code, said = exit_code(site.start("run", name, "--engine", "inline"))
        told.append(said)
    return told


def lines_of(name: str) -> list[bytes]:
    return [b"line %04d of %s" % (number, name.encode()) for number in range(300)]


def feed(site: Site, names: list[str]) -> None:
    for folder in ("logs", "out"):
        (site.folder / folder).mkdir()
    documents = {}
    for name in names:
        (site.folder / "logs" / f"{name}.log").write_bytes(b"".join(line + b"\n" for line in lines_of(name)))
        source, sink = {"file": {"path": f"logs/{name}.log"}}, {"file": {"path": f"out/{name}.txt"}}
        documents[name] = {"source": source, "sink": sink}
    site.apply_all(documents)


def settled_up(site: Site, names: list[str]) -> Account:
    """All connectors together: each has one partition and one place."""
    logs = {name: site.folder / "logs" / f"{name}.log" for name in names}
    with Ledger.open(site.database_url) as ledger:
        settled = [one for name in names for one in ledger.receipts(ledger.connector(name).uid, limit=None)]
    return account(
        {str(path): lines_of(name) for name, path in logs.items()},
        {name: (site.folder / "out" / f"{name}.txt").read_bytes().splitlines() for name in names},
        [{"partition": one.partition.key, "incarnation": one.incarnation, **vars(one.receipt)} for one in settled],
        {str(path): Span(0, path.stat().st_size) for path in logs.values()},
    )
