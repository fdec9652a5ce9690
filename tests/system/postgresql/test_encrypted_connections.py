"""PostgreSQL behind TLS: the server has to prove who it is, and may ask the same of us."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.certificates import make_authority, make_certificate
from tests.postgres_tables import Database
from tests.postgres_tls import tls_in_front
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


@pytest.fixture
def database(postgres_url: str) -> Iterator[Database]:
    made = Database(postgres_url)
    made.run("CREATE TABLE orders (id bigint PRIMARY KEY, name text)")
    yield made
    made.drop_slots()


@pytest.fixture
def encrypted(database: Database, files: Path) -> Iterator[dict[str, Any]]:
    """Options of who may come in."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files / "server.pem", files / "server.key")
    context.load_verify_locations(files / "ca.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    mine = {"tls_certificate": f"{files}/mover.pem", "tls_key": f"{files}/mover.key"}
    with tls_in_front(database.options, context) as there:
        yield {**there, "tls": True, "tls_ca": f"{files}/ca.pem", **mine}


def test_rows_go_in_and_out_and_their_changes_come(
    bare_site: Site, database: Database, encrypted: dict[str, Any]
) -> None:
    changes = {"postgresql_changes": {**encrypted, "tables": ["orders"], "schemas": False}}
    bare_site.apply("changes", {"source": changes, "sink": {"file": {"path": "changes.jsonl"}}})
    bare_site.waybill("run", "changes", "--engine", "inline")
    apply(bare_site, {"postgresql": {**encrypted, "table": "orders"}})
    write(bare_site, *({"id": n, "name": f"order {n}"} for n in range(500)))
    assert "500 delivered" in run(bare_site)
    assert database.run("SELECT count(*), max(name) FROM orders") == [(500, "order 99")]
    rows = {"postgresql": {**encrypted, "table": "orders", "incrementing": "id"}}
    bare_site.apply("rows", {"source": rows, "sink": {"file": {"path": "rows.jsonl"}}})
    for name in ("rows", "changes"):
        assert "500 delivered" in bare_site.waybill("run", name, "--engine", "inline")
        lines = (bare_site.folder / f"{name}.jsonl").read_text().splitlines()
        told = [json.loads(one) for one in lines]
        assert [one.get("after", one)["id"] for one in told] == [*range(500)]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"tls_ca": "{files}/others.pem"}, "certificate verify failed"),
        ({"tls_certificate": "", "tls_key": ""}, "There is no encrypted connection"),
        ({"host": "localhost"}, 'does not match host name "localhost"'),
    ],
)
def test_who_cannot_prove_who_he_is_gets_no_row(
    bare_site: Site, database: Database, encrypted: dict[str, Any], files: Path, given: dict[str, str], words: str
) -> None:
    options = {**encrypted, **{key: value.format(files=files) for key, value in given.items()}}
    apply(bare_site, {"postgresql": {**options, "table": "orders"}})
    write(bare_site, {"id": 1, "name": "one"})
    assert words in run(bare_site, code=UNREACHABLE)
    assert database.run("SELECT * FROM orders") == []


def test_a_server_without_tls_gets_no_row(bare_site: Site, database: Database, files: Path) -> None:
    """And no password."""
    with tls_in_front(database.options, None) as there:
        apply(bare_site, {"postgresql": {**there, "table": "orders", "tls": True, "tls_ca": f"{files}/ca.pem"}})
        write(bare_site, {"id": 1, "name": "one"})
        assert "does not support SSL" in run(bare_site, code=UNREACHABLE)
    assert database.run("SELECT * FROM orders") == []
