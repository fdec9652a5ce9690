"""MariaDB with TLS: the server has to prove who it is, and asks the same of us."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from connect_core.systems.mysql.connecting import connected
from connect_core.systems.mysql.options import MysqlOptions
from tests import table_tls
from tests.mariadb import Database, MariaDB, running
from tests.mysql import ONLY_MARIADB
from tests.site import Site
from tests.table_connectors import UNREACHABLE

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return table_tls.make_files(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def server(worker_folder: Path, files: Path) -> Iterator[MariaDB]:
    settings = {"ssl-ca": "ca.pem", "ssl-cert": "server.pem", "ssl-key": "server.key"}
    made = MariaDB(worker_folder / "mariadb-tls", settings={key: str(files / name) for key, name in settings.items()})
    yield from running(made)


@pytest.fixture
def database(server: MariaDB) -> Database:
    made = Database(server)
    made.run(
        table_tls.TABLE,
        "CREATE USER IF NOT EXISTS mover@'127.0.0.1' REQUIRE X509",
        "GRANT ALL ON *.* TO mover@'127.0.0.1'",
    )
    return made


@pytest.fixture
def encrypted(database: Database, files: Path) -> dict[str, Any]:
    return {**database.options, "user": "mover", **table_tls.of_mover(files)}


def test_rows_go_in_and_out_and_their_changes_come(
    bare_site: Site, database: Database, encrypted: dict[str, Any]
) -> None:
    table_tls.check_rows_go_in_and_out(bare_site, database, "mysql", encrypted)


@pytest.mark.parametrize(
    ("given", "code", "words"),
    [
        ({"tls_ca": "{files}/others.pem"}, UNREACHABLE, "certificate verify failed"),
        ({"tls_certificate": "", "tls_key": ""}, 2, "The login was refused"),
        ({"host": "localhost"}, UNREACHABLE, "not valid for 'localhost'"),
    ],
)
def test_who_cannot_prove_who_he_is_gets_no_row(
    bare_site: Site,
    database: Database,
    encrypted: dict[str, Any],
    files: Path,
    given: dict[str, str],
    code: int,
    words: str,
) -> None:
    options = {**encrypted, **{key: value.format(files=files) for key, value in given.items()}}
    table_tls.check_no_row_goes_in(bare_site, database, "mysql", options, code, words)


def test_without_tls_it_is_encrypted_where_the_server_can(database: Database) -> None:
    """With nobody's certificate checked, as other programs do."""
    assert cipher(database)


def cipher(database: Database) -> str:
    with closing(connected(MysqlOptions(**database.options), "here")) as session, session.cursor() as asking:
        asking.execute("SHOW STATUS LIKE 'Ssl_cipher'")
        return str(dict(asking.fetchall())["Ssl_cipher"])


@ONLY_MARIADB  # MySQL makes a certificate of its own
def test_without_tls_a_server_that_cannot_is_asked_in_plain(mariadb: MariaDB) -> None:
    assert not cipher(Database(mariadb))


@ONLY_MARIADB
def test_a_server_without_tls_gets_no_row(bare_site: Site, mariadb: MariaDB, files: Path) -> None:
    """And no password."""
    database = Database(mariadb)
    database.run(table_tls.TABLE)
    options = {**database.options, "tls": True, "tls_ca": f"{files}/ca.pem"}
    table_tls.check_no_row_goes_in(bare_site, database, "mysql", options, UNREACHABLE, "SSL is required")
