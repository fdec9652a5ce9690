"""PostgreSQL behind TLS: the server has to prove who it is, and may ask the same of us."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import table_tls
from tests.postgres_tables import Database
from tests.postgres_tls import tls_in_front
from tests.site import Site
from tests.table_connectors import UNREACHABLE

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return table_tls.make_files(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def database(postgres_url: str) -> Iterator[Database]:
    made = Database(postgres_url)
    made.run(table_tls.TABLE)
    yield made
    made.drop_slots()


@pytest.fixture
def encrypted(database: Database, files: Path) -> Iterator[dict[str, Any]]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files / "server.pem", files / "server.key")
    context.load_verify_locations(files / "ca.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    # By 1.3 who shows no certificate hears of it behind the handshake, or finds the connection cut.
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with tls_in_front(database.options, context) as there:
        yield {**there, **table_tls.of_mover(files)}


def test_rows_go_in_and_out_and_their_changes_come(
    bare_site: Site, database: Database, encrypted: dict[str, Any]
) -> None:
    table_tls.check_rows_go_in_and_out(bare_site, database, "postgresql", encrypted)


@pytest.mark.parametrize(
    ("given", "code", "words"),
    [
        ({"tls_ca": "{files}/others.pem"}, UNREACHABLE, "certificate verify failed"),
        ({"tls_certificate": "", "tls_key": ""}, UNREACHABLE, "There is no encrypted connection"),
        ({"host": "localhost"}, UNREACHABLE, 'does not match host name "localhost"'),
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
    table_tls.check_no_row_goes_in(bare_site, database, "postgresql", options, code, words)


def test_a_server_without_tls_gets_no_row(bare_site: Site, database: Database, files: Path) -> None:
    """And no password."""
    with tls_in_front(database.options, None) as there:
        options = {**there, "tls": True, "tls_ca": f"{files}/ca.pem"}
        table_tls.check_no_row_goes_in(bare_site, database, "postgresql", options, UNREACHABLE, "does not support SSL")


@pytest.mark.parametrize(
    ("given", "words"),
    [({"user": "nobody_here"}, "The login was refused"), ({"database": "none_here"}, "There is no such database")],
)
def test_a_login_that_leads_nowhere_is_for_a_person(
    bare_site: Site, database: Database, given: dict[str, str], words: str
) -> None:
    table_tls.check_no_row_goes_in(bare_site, database, "postgresql", {**database.options, **given}, 2, words)
