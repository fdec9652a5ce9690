"""By what a pipeline is recognised later: open ranges are pinned to it (delivery rule 8). Pure."""

from __future__ import annotations

import hashlib
import json

from connect_core.sdk.values import Json

_CODE, _RULES_CODE, _PARSE_CODE = "bytes-through/1", "rules/1", "parse/1"
"""Raised by whoever changes what a pipeline makes of a record."""


def pipeline_digest(document: Json) -> str:
    """The same for the same pinned part of a document and the same code."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    code = _CODE if document.get("rules") is None else f"{_CODE} {_RULES_CODE}"
    code = code if document.get("parse") is None else f"{code} {_PARSE_CODE}"
    return hashlib.blake2b(f"{code}\n{text}".encode(), digest_size=8).hexdigest()
