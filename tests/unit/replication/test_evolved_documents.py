"""Whether a document can be stored that a run has evolved: by its own words, by a Schema Registry, by a table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from connect_core.config import check, create_home, load_settings
from connect_core.config.evolved_fields import evolved
from connect_core.config.written import Written
from connect_core.errors import ConfigError, Unreachable
from connect_core.ledger import Connector
from connect_core.ledger.database import now
from connect_core.replication.driver import evolved_documents
from connect_core.replication.driver.evolved_documents import checked_evolved
from connect_core.replication.driver.schema_ids import with_schema_ids
from connect_core.sdk.plugin import ProbeResult
from connect_core.systems import SYSTEMS
from tests.schema_registry import Registry, served

TOPIC = {"name_servers": "127.0.0.1:9876", "topic": "orders"}


@pytest.fixture
def registry() -> Iterator[Registry]:
    with served(Registry()) as one:
        yield one


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return create_home()


def applied(home: Path, **parts: Any) -> Connector:
    document = {
        "version": 1,
        "name": "orders",
        "source": {"rocketmq": {"name_servers": "127.0.0.1:9876", "topics": ["in"]}},
        "sink": {"rocketmq": TOPIC},
        "parse": {"format": "json", "fields": {"id": "int32"}, "unknown": "evolve"},
        **parts,
    }
    checked = check(Written(document, "orders.yaml"), home, load_settings(home))
    [checked] = with_schema_ids([checked], register=True)
    return Connector("u" * 12, "orders", 1, checked.data, "running", now())


def evolve(old: Connector, home: Path, needs: dict[str, Any], *, register: bool = True) -> dict[str, Any]:
    document = evolved(old.document, needs)
    assert document is not None
    return checked_evolved(old, document, home, load_settings(home), register=register)


def avro(registry: Registry, **more: Any) -> dict[str, Any]:
    return {"format": "avro", "framing": "registry", "registry": {"url": registry.url, "auto_register": True, **more}}


def test_a_wider_schema_gets_a_number_of_its_own(home: Path, registry: Registry) -> None:
    old = applied(home, encode=avro(registry))
    assert old.document["encode"]["schema_id"] == 1
    assert "schema_id" not in evolve(old, home, {"late": "bool"}, register=False)["encode"]
    assert len(registry.schemas) == 1, "a look changes nothing"
    assert evolve(old, home, {"late": "bool"})["encode"]["schema_id"] == 2


def test_the_same_schema_keeps_its_number(home: Path, registry: Registry) -> None:
    old = applied(home, encode=avro(registry), transforms=[{"keep": ["id"]}])
    assert evolve(old, home, {"late": "bool"})["encode"]["schema_id"] == 1


def test_a_registry_that_does_not_take_it_says_so_and_one_that_is_away_is_no_answer(
    home: Path, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = applied(home, encode=avro(registry))
    with monkeypatch.context() as patched:
        patched.setattr(Registry, "_compatible", lambda *_: False)
        for register in (False, True):
            with pytest.raises(ConfigError, match="not compatible"):
                evolve(old, home, {"late": "bool"}, register=register)
    registry.failing = 500
    with pytest.raises(Unreachable):
        evolve(old, home, {"late": "bool"})


def test_what_a_later_part_of_the_document_cannot_do_is_refused(home: Path) -> None:
    old = applied(home, encode={"format": "csv"})
    with pytest.raises(ConfigError) as refused:
        evolve(old, home, {"tags": ["text"]})
    assert "tags is a list" in str(refused.value.faults[0])


def test_a_table_without_the_column_does_not_take_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it lacked before is no fault of the field."""

    def probe(role: str, options: dict[str, Any]) -> Iterator[ProbeResult]:
        yield ProbeResult(False, "a standby")
        for name in options["row_fields"]:
            yield ProbeResult(name != "late", f"column {name}")

    plugin = replace(SYSTEMS["postgresql"], probe=probe)
    monkeypatch.setattr(evolved_documents, "SYSTEMS", {"postgresql": plugin})
    table = {"host": "127.0.0.1", "database": "shop", "user": "waybill", "table": "public.orders"}
    old = applied(home, sink={"postgresql": table})
    assert evolve(old, home, {"who": "text"})["parse"]["fields"] == {"id": "int32", "who": "text"}
    with pytest.raises(ConfigError, match=r"^column late$"):
        evolve(old, home, {"late": "bool"})
