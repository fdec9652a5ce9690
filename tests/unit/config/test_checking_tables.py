"""Rules that name tables, checked: which names there may be, and what a document says of each table."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Faults = Callable[..., list[str]]

DOCUMENT = """\
version: 1
name: x
source: {file: {path: a}}
sink: {SYSTEM: {host: h, database: shop, user: u, table: orders, MORE}}
rules:
- {name: own}
- {name: other, RULE}
parse: {format: json, fields: {id: int64, price: int64, email: text}}
"""
SYSTEMS = pytest.mark.parametrize("system", ["postgresql", "mysql"])


def ruled(system: str, rule: str = "to: customers", more: str = "tables: {}") -> str:
    return DOCUMENT.replace("SYSTEM", system).replace("RULE", rule).replace("MORE", more)


@SYSTEMS
@pytest.mark.parametrize(
    ("rule", "more"),
    [
        ("to: customers", "tables: {}"),
        ("to: sales.customers", "tables: {sales.customers: {fields: [id, email]}, orders: {fields: [id, price]}}"),
        ("to: customers", "mode: upsert, key: [id], create_table: true, tables: {customers: {key: [email]}}"),
        ("to: customers, enabled: false", "tables: {customers: {fields: [id]}}"),
        ("to: '{{a}}'", "tables: {'{a}': {fields: [id]}}"),
    ],
)
def test_a_rule_may_name_a_table(system: str, rule: str, more: str, faults: Faults) -> None:
    assert faults(ruled(system, rule, more)) == []


@SYSTEMS
@pytest.mark.parametrize(
    ("rule", "fault"),
    [
        ("to: '{$.id}'", "names a table by what a record has; tables are named as they are: write a rule for each"),
        ("to: 'x_{topic}'", "names a table by what a record has"),
        ("to: a.b.c", "must be TABLE or "),
        (f"to: {'a' * 65}", "must be a name of 1 to "),
        ("to: waybill_markers", "is the name of the table of markers: rows cannot go among these"),
    ],
)
def test_what_no_table_is_called(system: str, rule: str, fault: str, faults: Faults) -> None:
    told = faults(ruled(system, rule).replace("topic}", "payload:text}"))
    assert [one.partition(fault)[0] for one in told] == ["rules.1.to: line 7: "]


@SYSTEMS
@pytest.mark.parametrize(
    ("more", "fault"),
    [
        ("tables: {custmers: {}}", ".tables.custmers: line 4: no rule names this table, and it is not the sink's own"),
        (
            "tables: {customers: {fields: [mail]}}",
            "tables.customers.fields names mail, which is no field of the records",
        ),
        ("tables: {customers: {field: [id]}}", '.tables.customers.field: line 4: unknown key "field"; did you mean'),
        ("tables: {customers: {key: [id]}}", "key goes with mode: upsert"),
        ("mode: upsert, tables: {customers: {key: [id, id]}}", "key names a column twice"),
        (
            "mode: upsert, key: [id], tables: {customers: {fields: [email]}}",
            "key names id, which is no field of the records that go to customers",
        ),
        ("mode: upsert, create_table: true, tables: {orders: {key: [id]}, customers: {}}", "need key"),
    ],
)
def test_what_cannot_be_said_of_a_table(system: str, more: str, fault: str, faults: Faults) -> None:
    (told,) = faults(ruled(system, more=more))
    assert told.startswith(f"sink.{system}")
    assert fault in told


@SYSTEMS
def test_a_rule_names_no_table_that_the_source_reads(system: str, faults: Faults) -> None:
    source = f"{system}: {{host: h, database: shop, user: u, tables: ['cust*', 'pay_*']}}"
    text = ruled(system).replace("file: {path: a}", source)
    assert faults(text) == ["rules.1.to: line 7: is a table that the source reads"]
    assert faults(text.replace("cust*", "stock")) == []
    assert faults(text.replace("host: h", "host: other", 1)) == []


def test_names_of_mysql_that_differ_in_capitals_are_perhaps_one(faults: Faults) -> None:
    (told,) = faults(ruled("mysql", "to: Orders"))
    assert told.startswith("sink.mysql.table: line 4: and Orders, which a rule names, differ in capitals alone")
    assert faults(ruled("mysql", "to: shop.orders")) == faults(ruled("postgresql", "to: Orders")) == []
