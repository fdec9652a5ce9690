"""Databases that are reached by TLS, of every database alike."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.certificates import make_authority, make_certificate
from tests.mariadb import Database as MariaDatabase
from tests.postgres_tables import Database as PostgresDatabase
from tests.site import Site
from tests.table_connectors import apply, run, write

Database = MariaDatabase | PostgresDatabase
TABLE = "CREATE TABLE orders (id bigint PRIMARY KEY, name text)"


def make_files(folder: Path) -> Path:
    """`ca` has signed `server` and `mover`, and knows nothing of `others`."""
    for name in ("ca", "others"):
        make_authority(folder, name)
    for name in ("server", "mover"):
        make_certificate(folder, name, "ca")
    return folder


def of_mover(files: Path) -> dict[str, Any]:
    """Options of who may come in."""
    mine = {"tls_certificate": f"{files}/mover.pem", "tls_key": f"{files}/mover.key"}
    return {"tls": True, "tls_ca": f"{files}/ca.pem", **mine}


def check_rows_go_in_and_out(site: Site, database: Database, system: str, encrypted: dict[str, Any]) -> None:
    changes = {f"{system}_changes": {**encrypted, "tables": ["orders"], "schemas": False}}
    site.apply("changes", {"source": changes, "sink": {"file": {"path": "changes.jsonl"}}})
    site.waybill("run", "changes", "--engine", "inline")
    apply(site, {system: {**encrypted, "table": "orders"}})
    write(site, *({"id": n, "name": f"order {n}"} for n in range(500)))
    assert "500 delivered" in run(site)
    assert database.run("SELECT count(*), max(name) FROM orders") == [(500, "order 99")]
    rows = {system: {**encrypted, "table": "orders", "incrementing": "id"}}
    site.apply("rows", {"source": rows, "sink": {"file": {"path": "rows.jsonl"}}})
    for name in ("rows", "changes"):
        assert "500 delivered" in site.waybill("run", name, "--engine", "inline")
        lines = (site.folder / f"{name}.jsonl").read_text().splitlines()
        told = [json.loads(one) for one in lines]
        assert [one.get("after", one)["id"] for one in told] == [*range(500)]


def check_no_row_goes_in(
    site: Site, database: Database, system: str, options: dict[str, Any], code: int, words: str
) -> None:
    apply(site, {system: {**options, "table": "orders"}})
    write(site, {"id": 1, "name": "one"})
    assert words in run(site, code=code)
    assert database.run("SELECT * FROM orders") == []
