"""The number of a schema is the document's: a run that had to ask for it could write another one (delivery rule 8)."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from connect_core.config import load_settings
from connect_core.errors import ConfigError
from connect_core.ledger import Connector, Ledger
from connect_core.replication.driver.prepare import resolved


def _resolved(home: Path, encode: dict[str, Any]) -> Any:
    document = {
        "version": 1,
        "name": "orders",
        "source": {"file": {"path": str(home / "a.log")}},
        "sink": {"rocketmq": {"name_servers": "127.0.0.1:9876", "topic": "orders"}},
        "parse": {"format": "json", "fields": {"id": "int64"}},
        "encode": {"format": "avro", "framing": "registry", "registry": {"url": "http://127.0.0.1:1"}} | encode,
    }
    connector = SimpleNamespace(document=document, name="orders", revision=1, uid="0" * 12)
    return resolved(cast(Ledger, None), load_settings(None), home, cast(Connector, connector))


def test_a_document_whose_schema_has_no_number_does_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAYBILL_FILES_ROOTS", str(tmp_path))
    with pytest.raises(ConfigError, match="The schema that it writes with has no number"):
        _resolved(tmp_path, {})
    assert _resolved(tmp_path, {"schema_id": 7}).pipeline["encode"]["schema_id"] == 7
