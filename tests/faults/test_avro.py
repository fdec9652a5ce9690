"""Avro with the number of a Schema Registry, while a worker is killed and the schema changes: a range is finished with
the number that it was begun with, and nobody asks the registry meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from io import BytesIO
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_writer

from tests.faults.kit.journeys import database_of
from tests.faults.kit.proxy import RocketMQProxy
from tests.faults.kit.topics import JavaReader
from tests.faults.numbered import Numbered, check_finished_as_begun
from tests.faults.rows import FaultRow
from tests.site import Site

pytestmark = [pytest.mark.server, pytest.mark.fault]

PRICE = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
SCHEMA: Any = parse_schema(
    {
        "type": "record",
        "name": "Row",
        "fields": [
            {"name": "n", "type": ["null", "string"]},
            {"name": "price", "type": ["null", PRICE]},
            *({"name": name, "type": ["null", "string"]} for name in ("who_card", "customer", "origin")),
        ],
    }
)


@dataclass
class AsAvro(Numbered):
    name: str = "as-avro"
    where: str = "RocketMQ → RocketMQ as Avro"

    def encode(self) -> dict[str, Any]:
        return {"format": "avro", "record": self.record}

    def value(self, number: int, *, first: bool) -> bytes:
        """By another program."""
        stream = BytesIO()
        stream.write(b"\0" + (1 if first else 2).to_bytes(4, "big"))
        row = {"n": f"{number}", "price": Decimal(number % 9_000) / 100, "who_card": "***", "customer": f"Zoë {number}"}
        schemaless_writer(stream, SCHEMA, row | {"origin": f"kiln-{number}"})
        return stream.getvalue()


@pytest.mark.parametrize("sends", [0, 1, 4])
def test_a_range_is_finished_with_the_number_that_it_was_begun_with(
    site: Site, java_reader: JavaReader, proxy: RocketMQProxy, row: FaultRow, sends: int
) -> None:
    row.describe("SIGKILL of the worker, then another schema is applied", database=database_of(site))
    check_finished_as_begun(AsAvro(site, java_reader, proxy), row, sends, schemas={1, 2})
