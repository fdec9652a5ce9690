"""What a query is called, and what documents may say of it."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from connect_core.sdk.guarantee import Guarantee
from connect_core.systems.mysql.plugin import PLUGIN as MYSQL
from connect_core.systems.mysql.source_options import MysqlSourceOptions
from connect_core.systems.postgresql.plugin import PLUGIN as POSTGRESQL
from connect_core.systems.postgresql.source_options import PostgresSourceOptions
from connect_core.systems.tables.queries import CHANGED, RECREATED, origin_of, relation, why_another

GIVEN: dict[str, Any] = {"host": "h", "database": "d", "user": "u", "query": "SELECT id FROM t", "incrementing": "id"}
OPTIONS = [MysqlSourceOptions, PostgresSourceOptions]


@pytest.mark.parametrize("options", OPTIONS)
def test_a_query_takes_the_place_of_a_table(options: Any) -> None:
    assert options.model_validate({**GIVEN, "query": "\n  SELECT id FROM t\n"}).query == "SELECT id FROM t"


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"query": "SELECT 1 AS id;"}, "no semicolon at its end"),
        ({"query": "SELECT 1 AS id ; \n"}, "no semicolon at its end"),
        ({"query": "SELECT '\0'"}, "must be one SELECT"),
        ({"query": "  "}, "or write a query"),
        ({"table": "t"}, "or write a query"),
        ({"tables": ["t"]}, "or write a query"),
        ({"exclude": ["t"]}, "exclude goes with tables"),
        ({"incrementing": None}, "query needs incrementing"),
        ({"incrementing": None, "bulk": True}, "query needs incrementing"),
        ({"bulk": True, "timestamp": "at"}, "leave one of them out"),
    ],
)
def test_what_does_not_go_with_a_query(options: Any, more: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        options.model_validate({**GIVEN, **more})


def test_a_comment_at_the_end_of_a_query_ends_there() -> None:
    assert relation("SELECT 1 -- one").splitlines()[-1] == ") AS q"


def test_origins_tell_why_they_differ() -> None:
    now = origin_of("SELECT 1/id/", "db/1")
    assert len(now) == 16
    assert why_another(origin_of("SELECT 1/id/", "db/2"), now, is_query=True) == RECREATED
    assert why_another(origin_of("SELECT 2/id/", "db/1"), now, is_query=True) == CHANGED
    assert why_another("0123456789abcdef", now, is_query=False) == RECREATED


@pytest.mark.parametrize("plugin", [MYSQL, POSTGRESQL])
@pytest.mark.parametrize("more", [{}, {"timestamp": "at"}, {"bulk": True}])
def test_a_query_has_promises_of_its_own(plugin: Any, more: dict[str, Any]) -> None:
    of_table: Guarantee = plugin.guarantee("source", {**GIVEN, "query": "", "table": "t", **more})
    of_query: Guarantee = plugin.guarantee("source", {**GIVEN, **more})
    assert of_query.delivery == of_table.delivery == "exactly once"
    assert of_query.order
    if not more.get("bulk"):
        assert any("result" in one for one in of_query.conditions)


@pytest.mark.parametrize("plugin", [MYSQL, POSTGRESQL])
def test_what_a_query_reads_is_not_known_before_the_server_says_it(plugin: Any) -> None:
    sink = {**GIVEN, "table": "t"}
    assert not plugin.feeds(sink, GIVEN)
