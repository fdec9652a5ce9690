"""Protobuf with the number of a Schema Registry, while a worker is killed and the message changes: a range is finished
with the number that it was begun with, and nobody asks the registry meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from google.protobuf.message_factory import GetMessageClass

from connect_core.rows.protobuf_schemas import message_of
from tests.faults.kit.journeys import database_of
from tests.faults.kit.proxy import RocketMQProxy
from tests.faults.kit.topics import JavaReader
from tests.faults.numbered import Numbered, check_finished_as_begun
from tests.faults.rows import FaultRow
from tests.protobuf import descriptors
from tests.site import Site

pytestmark = [pytest.mark.server, pytest.mark.fault]

SET = descriptors("""syntax = "proto3";
message Row { string n = 1; optional string price = 2; string who_card = 3; string customer = 4; string origin = 5; }
message Other { string n = 1; optional string price = 2; string who_card = 3; string customer = 4; string origin = 9; }
""")
PLACES = {"Row": b"\0", "Other": b"\2\2"}


@dataclass
class AsProtobuf(Numbered):
    name: str = "as-protobuf"
    where: str = "RocketMQ → RocketMQ as Protobuf"

    def encode(self) -> dict[str, Any]:
        return {"format": "protobuf", "message": self.record, "descriptors": SET}

    def parts(self) -> dict[str, Any]:
        parts = super().parts()
        return parts | {"transforms": [*parts["transforms"], {"cast": {"price": "text"}}]}

    def value(self, number: int, *, first: bool) -> bytes:
        """By the classes that the library makes of the same descriptors. One file, of one number, has both messages."""
        message = "Row" if first else "Other"
        price = f"{number % 9_000 // 100}.{number % 100:02}"
        made = GetMessageClass(message_of(SET, message))(
            n=f"{number}", price=price, who_card="***", customer=f"Zoë {number}", origin=f"kiln-{number}"
        )
        return b"\0" + (1).to_bytes(4, "big") + PLACES[message] + bytes(made.SerializeToString())


@pytest.mark.parametrize("sends", [0, 1, 4])
def test_a_range_is_finished_with_the_message_that_it_was_begun_with(
    site: Site, java_reader: JavaReader, proxy: RocketMQProxy, row: FaultRow, sends: int
) -> None:
    row.describe("SIGKILL of the worker, then another message is applied", database=database_of(site))
    check_finished_as_begun(AsProtobuf(site, java_reader, proxy), row, sends, schemas={1})
