"""MariaDB with TLS: the server has to prove who it is, and asks the same of us."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.certificates import make_authority, make_certificate
from tests.mariadb import Database, MariaDB, running
from tests.site import Site
from tests.table_connectors import UNREACHABLE, apply, run, write

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`ca` has signed `server` and `mover`, and knows nothing of `others`."""
    folder = tmp_path_factory.mktemp("tls")
    for name in ("ca", "others"):
        make_authority(folder, name)
    for name in ("server", "mover"):
        make_certificate(folder, name, "ca")
    return folder


@pytest.fixture(scope="module")
def server(worker_folder: Path, files: Path) -> Iterator[MariaDB]:
    settings = {"ssl-ca": "ca.pem", "ssl-cert": "server.pem", "ssl-key": "server.key"}
    made = MariaDB(worker_folder / "mariadb-tls", settings={key: str(files / name) for key, name in settings.items()})
    yield from running(made)


@pytest.fixture
def database(server: MariaDB) -> Database:
    made = Database(server)
    made.run(
        "CREATE TABLE orders (id bigint PRIMARY KEY, name text)",
        "CREATE USER IF NOT EXISTS mover@'127.0.0.1' REQUIRE X509",
        "GRANT ALL ON *.* TO mover@'127.0.0.1'",
    )
    return made


@pytest.fixture
def encrypted(database: Database, files: Path) -> dict[str, Any]:
    """Options of who may come in."""
    mine = {"user": "mover", "tls_certificate": f"{files}/mover.pem", "tls_key": f"{files}/mover.key"}
    return {**database.options, **mine, "tls": True, "tls_ca": f"{files}/ca.pem"}


def test_rows_go_in_and_out_and_their_changes_come(
    bare_site: Site, database: Database, encrypted: dict[str, Any]
) -> None:
    changes = {"mysql_changes": {**encrypted, "tables": ["orders"], "schemas": False}}
    bare_site.apply("changes", {"source": changes, "sink": {"file": {"path": "changes.jsonl"}}})
    bare_site.waybill("run", "changes", "--engine", "inline")
    apply(bare_site, {"mysql": {**encrypted, "table": "orders"}})
    write(bare_site, *({"id": n, "name": f"order {n}"} for n in range(500)))
    assert "500 delivered" in run(bare_site)
    assert database.run("SELECT count(*), max(name) FROM orders") == [(500, "order 99")]
    rows = {"mysql": {**encrypted, "table": "orders", "incrementing": "id"}}
    bare_site.apply("rows", {"source": rows, "sink": {"file": {"path": "rows.jsonl"}}})
    for name in ("rows", "changes"):
        assert "500 delivered" in bare_site.waybill("run", name, "--engine", "inline")
        lines = (bare_site.folder / f"{name}.jsonl").read_text().splitlines()
        told = [json.loads(one) for one in lines]
        assert [one.get("after", one)["id"] for one in told] == [*range(500)]


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
    apply(bare_site, {"mysql": {**options, "table": "orders"}})
    write(bare_site, {"id": 1, "name": "one"})
    assert words in run(bare_site, code=code)
    assert database.run("SELECT * FROM orders") == []


def test_a_server_without_tls_gets_no_row(bare_site: Site, mariadb: MariaDB, files: Path) -> None:
    """And no password."""
    database = Database(mariadb)
    database.run("CREATE TABLE orders (id bigint PRIMARY KEY, name text)")
    apply(bare_site, database.sink("orders", tls=True, tls_ca=f"{files}/ca.pem"))
    write(bare_site, {"id": 1, "name": "one"})
    assert "SSL is required" in run(bare_site, code=UNREACHABLE)
    assert database.run("SELECT * FROM orders") == []
