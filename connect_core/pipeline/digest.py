"""By what a pipeline is recognised later: open ranges are pinned to it (delivery rule 8). Pure."""

from __future__ import annotations

import hashlib
import json

from connect_core import packages
from connect_core.pipeline.formats.known import FORMATS, read_format
from connect_core.pipeline.transforms.sql_words import DUCKDB
from connect_core.sdk.values import Json

_CODE, _RULES_CODE, _PARSE_CODE, _ROWS_CODE = "bytes-through/1", "rules/1", "parse/1", "rows/1"
_SQL_CODE = "sql/1"
"""Raised by whoever changes what a pipeline makes of a record."""


def has_rows(document: Json) -> bool:
    """Whether records have fields with types in this pipeline."""
    parse = document.get("parse", {})
    declared = document.get("transforms") or document.get("encode") or parse.get("fields")
    return bool(declared) or read_format(parse).reads_rows


def pipeline_digest(document: Json) -> str:
    """The same for the same pinned part of a document and the same code."""
    in_order = has_rows(document)  # the order of fields and steps is a part of what they make
    text = json.dumps(document, sort_keys=not in_order, separators=(",", ":"))
    code = _CODE if document.get("rules") is None else f"{_CODE} {_RULES_CODE}"
    code = code if document.get("parse") is None else f"{code} {_PARSE_CODE}"
    code = f"{code} {_ROWS_CODE}" if has_rows(document) else code
    steps = document.get("transforms", ())
    if any("sql" in one for one in steps):
        code = f"{code} {_SQL_CODE} duckdb/{DUCKDB}"
    if functions := [one["python"] for one in steps if "python" in one]:
        known = packages.releases(packages.FUNCTIONS)
        code = " ".join([code, *(f"{name}/{known.get(name)}" for name in functions)])
    outside = {
        document[part].get("format", "none") for part in ("parse", "encode") if part in document
    } - FORMATS.keys()
    if outside:
        known = packages.releases(packages.FORMATS)
        code = " ".join([code, *(f"format {name}/{known.get(name)}" for name in sorted(outside))])
    return hashlib.blake2b(f"{code}\n{text}".encode(), digest_size=8).hexdigest()
