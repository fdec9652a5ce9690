"""What a record says in the errors sink of where it was read and why it was rejected."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from connect_core.ledger import DeadLetter, SentLetter
from connect_core.pipeline.letters import as_records
from connect_core.replication.driver.error_headers import MAX_CHARACTERS, headers_of
from connect_core.replication.driver.letters import letters_of
from connect_core.sdk.records import Partition, header_pairs
from connect_core.sdk.values import ERRORS_SINK, LIVE, OpenRange, Pins, Range

Q0 = Partition("orders/broker-a/0")
LETTER = DeadLetter(
    id=7,
    uid="u",
    stream=LIVE,
    partition=Q0,
    incarnation=0,
    offset=12,
    ordinal=0,
    stage="parse",
    kind="NotParsed",
    message="no JSON",
    original=b"payload",
    topic="orders",
    run_id="r",
    stored_at=datetime(2026, 11, 28, tzinfo=UTC),
    attributes={"key": "k", "headers": [["a", "1"], ["a", "2"], ["__connect.errors.stage", "before"]]},
)
WANTED = Range(ERRORS_SINK, Q0, 0, 0, 0, 1, 10, 1000, {}, Pins(1, "", {}, ""))


def sent(letter: DeadLetter, *, headers: bool) -> Any:
    """What becomes of it where it is read."""
    context: Any = SimpleNamespace(
        stream=ERRORS_SINK,
        connector=SimpleNamespace(uid="u", name="copy"),
        resolved=SimpleNamespace(errors_headers=headers),
        ledger=SimpleNamespace(letters_to_send=lambda *asked: ([SentLetter(0, letter, 3)], 1)),
    )
    [row] = letters_of(context, [OpenRange(1, WANTED, ())])[Q0.id].rows
    record = as_records([row]).to_pylist()[0]
    assert (record["offset"], record["value"], record["topic"]) == (0, b"payload", "orders")
    return header_pairs(record["headers"])


def test_the_names_are_those_of_kafka_connect_and_rocketmq_connect() -> None:
    assert {name.removeprefix("__connect.errors."): value for name, value in headers_of("copy", _letter())} == {
        "topic": "orders",
        "partition": "orders/broker-a/0",
        "offset": "12",
        "connector.name": "copy",
        "task.id": "3",
        "stage": "parse",
        "exception.class.name": "NotParsed",
        "exception.message": "no JSON",
    }


def test_what_does_not_exist_is_left_out_and_what_cannot_stand_in_a_header_is_replaced() -> None:
    letter = replace(LETTER, topic=None, message="a\x01b\nc" + "x" * MAX_CHARACTERS)
    found = dict(headers_of("copy", _letter(letter)))
    assert "__connect.errors.topic" not in found
    message = found["__connect.errors.exception.message"]
    assert message.startswith("a b cx")
    assert len(message) == MAX_CHARACTERS


def test_they_stand_behind_its_own_and_replace_those_of_another_connector() -> None:
    assert sent(LETTER, headers=False) == [("a", "1"), ("a", "2"), ("__connect.errors.stage", "before")]
    headers = sent(LETTER, headers=True)
    assert headers[:2] == [("a", "1"), ("a", "2")]
    assert [value for name, value in headers if name == "__connect.errors.stage"] == ["parse"]


def test_a_record_of_which_a_part_is_kept_says_so() -> None:
    assert sent(replace(LETTER, attributes=None), headers=False) == [("waybill.partial", "true")]


def _letter(letter: DeadLetter = LETTER) -> SentLetter:
    return SentLetter(0, letter, 3)
