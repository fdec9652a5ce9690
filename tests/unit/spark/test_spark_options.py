"""Options arrive as texts and are checked with all faults at once; bounds are JSON."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from connect_core.errors import ConfigError
from connect_core.rocketmq import Queue
from connect_core.spark.options import COLUMNS, ReadOptions, WriteOptions, checked, parse_bounds
from connect_core.spark.ranges import ReadRange

CLUSTER = {"name_servers": "127.0.0.1:9876; [::1]:9877"}


def read(**options: str) -> ReadOptions:
    return checked(ReadOptions, CLUSTER | {name.rstrip("_"): value for name, value in options.items()})


def test_texts_become_values() -> None:
    options = read(
        topics="orders, payments", columns="offset,value", on_data_loss="skip", range_records="7", busy_s="0.5"
    )
    assert options.name_servers == ("127.0.0.1:9876", "[::1]:9877")
    assert options.topics == ("orders", "payments")
    assert options.columns == ("offset", "value")
    assert (options.on_data_loss, options.range_records, options.busy_s) == ("skip", 7, 0.5)


def test_the_former_name_of_an_option_is_read() -> None:
    assert read(topics="orders", on_gap="skip").on_data_loss == "skip"


def test_what_is_left_out_means_everything_and_no_loss() -> None:
    options = read(topics="orders")
    assert (options.columns, options.on_data_loss) == (COLUMNS, "fail")
    assert (options.since, options.until, options.bounds) == (None, None, ())


def test_times_have_a_zone() -> None:
    options = read(topics="orders", from_="2026-11-01T00:00:00Z", to="2026-11-01T02:00:00+01:00")
    assert options.since is not None
    assert options.until is not None
    assert (options.until - options.since).total_seconds() == 3600


def test_bounds_are_json() -> None:
    assert parse_bounds('{"orders/broker-a/0": [100, 200], "a/b/c/1": [null, 5], "orders/x/2": [5, null]}') == (
        ReadRange(Queue("orders", "broker-a", 0), 100, 200),
        ReadRange(Queue("a", "b/c", 1), None, 5),
        ReadRange(Queue("orders", "x", 2), 5, None),
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("orders", "is not JSON"),
        ("[]", "names no queue"),
        ("{}", "names no queue"),
        ('{"orders": [0, 1]}', "'orders' is no queue"),
        ('{"orders/broker-a/x": [0, 1]}', "is no queue"),
        ('{"orders/broker-a/0": [0]}', "needs two offsets"),
        ('{"orders/broker-a/0": 7}', "needs two offsets"),
        ('{"orders/broker-a/0": [-1, 1]}', "needs two offsets"),
        ('{"orders/broker-a/0": [true, 1]}', "needs two offsets"),
        ('{"orders/broker-a/0": ["0", 1]}', "needs two offsets"),
        ('{"orders/broker-a/0": [2, 1]}', "ends before it begins"),
        ('{"orders/broker-a/0": [0, 1], "orders/broker-a/0": [5, 9]}', "names a queue twice"),
    ],
)
def test_bounds_that_are_none_are_told(text: str, told: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(told)):
        read(bounds=text)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "give topics, or bounds"),
        ({"topics": "a", "bounds": '{"a/b/0": [0, 1]}'}, "not both"),
        ({"bounds": '{"a/b/0": [0, 1]}', "from": "2026-11-01T00:00:00Z"}, "from and to go with topics"),
        ({"topics": "a", "from": "2026-11-01T00:00:00Z", "to": "2026-11-01T00:00:00Z"}, "to is not later than from"),
        ({"topics": "a", "from": "yesterday"}, "from: is not a time"),
        ({"topics": "a", "to": "2026-11-01"}, "to: is a time without its zone"),
        ({"topics": "a", "columns": "value,value"}, "each once"),
        ({"topics": "a", "columns": "gap"}, "there is no column gap"),
        ({"topics": "a b"}, "characters"),
        ({"topics": "a", "range_records": "0"}, "range_records"),
        ({"topics": "a", "path": "x"}, 'unknown key "path"'),
    ],
)
def test_wrong_options_are_told(options: dict[str, str], told: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(told)):
        checked(ReadOptions, CLUSTER | options)


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(ConfigError) as raised:
        checked(WriteOptions, {"name_servers": "nowhere", "routing": "random", "quues": "4"})
    assert [fault.path for fault in raised.value.faults] == ["name_servers.0", "routing", "quues"]


def test_a_secret_is_looked_up_where_it_is_used_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAYBILL_TEST_SECRET", "only-in-a-test")
    given = CLUSTER | {"topic": "orders", "user": "me", "password": "${env:WAYBILL_TEST_SECRET}"}
    options = checked(WriteOptions, given)
    credentials = options.client_options().credentials
    assert credentials is not None
    assert (credentials.access_key, credentials.secret_key) == ("me", "only-in-a-test")
    assert "only-in-a-test" not in repr(options)
    with pytest.raises(ConfigError) as raised:
        checked(WriteOptions, {**given, "user": "", "queues": "many"})
    assert "only-in-a-test" not in str(raised.value)
    with pytest.raises(ConfigError, match="WAYBILL_TEST_NOTHING is not set"):
        checked(WriteOptions, {**given, "password": "${env:WAYBILL_TEST_NOTHING}"})


def test_a_value_that_is_cut_is_masked_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAYBILL_TEST_LONG", "only-in-a-test" * 10)
    with pytest.raises(ConfigError, match=r"queues: .*, found '\*\*\*'$"):
        checked(WriteOptions, CLUSTER | {"topic": "orders", "queues": "${env:WAYBILL_TEST_LONG}"})


@pytest.mark.parametrize("model", [ReadOptions, WriteOptions])
def test_every_option_is_on_the_page(model: type[ReadOptions | WriteOptions]) -> None:
    page = (Path(__file__).parents[3] / "docs" / "spark-data-source.md").read_text()
    rows = "".join(line.split(" | ")[0] for line in page.splitlines() if line.startswith("| `"))
    told = set(re.findall(r"`(\w+)`", rows))
    assert {field.alias or name for name, field in model.model_fields.items()} <= told
