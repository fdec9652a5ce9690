"""Connector `a`, which tests of every database apply and run with the command."""

from __future__ import annotations

import json
from typing import Any

from tests.site import Site

FIELDS = {"id": "int64", "name": "text"}
UNREACHABLE = 3
"""The exit code."""


def apply(site: Site, sink: dict[str, Any], fields: Any = FIELDS, form: str = "json", **more: Any) -> None:
    """From lines of files into a table."""
    parse = {"format": form, "fields": fields}
    site.apply("a", {"source": {"file": {"path": "*.log"}}, "sink": sink, "parse": parse, **more})


def apply_changes(site: Site, sink: dict[str, Any], fields: Any = FIELDS, **more: Any) -> None:
    apply(site, sink, fields, "debezium", **more)


def run(site: Site, *words: str, code: int = 0) -> str:
    return site.waybill("run", "a", "--engine", "inline", *words, code=code)


def write(site: Site, *rows: object, name: str = "a.log") -> None:
    with (site.folder / name).open("a") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def event(op: str, before: object, after: object) -> dict[str, Any]:
    return {"op": op, "before": before, "after": after}
