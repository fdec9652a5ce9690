"""A statement of a `sql` step, read by DuckDB's own parser, and held against what is allowed. Pure but for that parser.

One SELECT over `records`: a list of expressions, and WHERE. The parser's tree is walked by what is known of it: a part
with a name or a value that is not known here is refused. So no other parser can understand the text differently, and
what runs later is made of the parts that were looked at, not of the text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from connect_core.pipeline.transforms import sql_words
from connect_core.pipeline.transforms.sql_engine import TOO_DEEP, asked
from connect_core.sdk.templates import Reference, reference
from connect_core.sdk.values import Json

TABLE = "records"
BESIDE = "record"
"""Before the name of what a record has beside its fields: `record.topic`, `record."header:site"`."""
OURS = "waybill_"
"""How the names of columns begin that DuckDB sees."""
MAX_TEXT = 20_000
ROW_WISE = "a statement makes at most one row of each record, of that record alone"

Resolve = Callable[[Sequence[str]], list[str]]
"""The parts of a column's name as written -> as DuckDB has it. Raises ValueError."""

_PLACE = frozenset({"query_location", "query_location_length"})
_BASE = frozenset({"class", "type", "alias"}) | _PLACE
_QUALIFIED = frozenset({"catalog", "schema", "qualified_name"})
_KEYS: Mapping[str, frozenset[str]] = {
    "COLUMN_REF": frozenset({"column_names"}),
    "CONSTANT": frozenset({"literal"}),
    "COMPARISON": frozenset({"left", "right"}),
    "CONJUNCTION": frozenset({"children"}),
    "OPERATOR": frozenset({"children"}),
    "BETWEEN": frozenset({"input", "lower", "upper"}),
    "CASE": frozenset({"case_checks", "else_expr"}),
    "CAST": frozenset({"child", "try_cast", "type_expr"}),
    "TYPE": frozenset({"type_name", "children"}) | _QUALIFIED,
    "LAMBDA": frozenset({"lhs", "expr", "syntax_type"}),
    "FUNCTION": frozenset(
        {"function_name", "arguments", "filter", "order_bys", "distinct", "is_operator", "export_state"}
        | {"is_legacy_function_call"}
        | _QUALIFIED
    ),
}
"""What a part of each kind has beside _BASE."""
_OPERATORS = frozenset(
    {
        *("OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL", "OPERATOR_NOT", "COMPARE_IN", "COMPARE_NOT_IN"),
        *("OPERATOR_COALESCE", "OPERATOR_NULLIF", "OPERATOR_TRY", "STRUCT_EXTRACT", "ARRAY_EXTRACT", "ARRAY_SLICE"),
    }
)
_SELECT: Json = {
    "type": "SELECT_NODE",
    "modifiers": [],
    "cte_map": {"map": []},
    "group_expressions": [],
    "group_sets": [],
    "aggregate_handling": "STANDARD_HANDLING",
    "having": None,
    "sample": None,
    "qualify": None,
}
"""A SELECT of a list, FROM and WHERE alone has all else like this."""
_FROM: Json = {
    **dict.fromkeys(("schema_name", "catalog_name"), ""),
    **dict.fromkeys(("sample", "at_clause")),
    "type": "BASE_TABLE",
    "column_name_alias": [],
    "qualified_name": {"path": [TABLE]},
}
_STAR: Json = {"columns": False, "expr": None, "qualified_exclude_list": [], "alias": ""}


@dataclass(frozen=True)
class Select:
    """`condition` is None where every record passes. `table` is how the statement calls the records."""

    items: tuple[Json, ...]
    condition: Json | None
    table: str


def parsed(text: str) -> Select:
    """Raises ValueError for what cannot be read, and for what is not allowed, whatever the fields are."""
    try:
        return _parsed(text)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None


def _parsed(text: str) -> Select:
    if len(text) > MAX_TEXT:
        raise ValueError(f"has {len(text)} characters, more than {MAX_TEXT}: use several steps")
    read = json.loads(asked("SELECT json_serialize_sql(?::VARCHAR)", text))
    if read["error"]:
        raise ValueError(_unreadable(text, read))
    if len(read["statements"]) != 1:
        raise ValueError(f"has {len(read['statements'])} statements: write one SELECT … FROM {TABLE}")
    [statement] = read["statements"]
    select = _select(statement["node"])
    for item in select.items:
        _ = expanded(item) if item["class"] == "STAR" else walked(item, list)
    if select.condition is not None:
        walked(select.condition, list)
    return select


def expanded(star: Json) -> tuple[frozenset[str], dict[str, Json], dict[str, str]]:
    """What `*` leaves out, what it replaces and what it gives other names, by name in small letters."""
    if any(star.get(name) != plain for name, plain in _STAR.items()):
        raise ValueError("COLUMNS is not allowed: name the columns, or write *")
    replaced = {one["key"].lower(): one["value"] for one in star["replace_list"]}
    for one in replaced.values():
        walked(one, list)
    renamed = {one["key"]["column"].lower(): one["value"] for one in star["rename_list"]}
    return frozenset(name.lower() for name in star["exclude_list"]), replaced, renamed


def references(select: Select) -> dict[str, Reference]:
    """What it names beside fields, by its text."""
    named: list[str] = []

    def noted(parts: Sequence[str]) -> list[str]:
        if len(parts) == 2 and parts[0].lower() == BESIDE:
            named.append(parts[1])
        return list(parts)

    for one in _expressions(select):
        walked(one, noted)
    return {one: beside(one) for one in named}


def beside(name: str) -> Reference:
    """Raises ValueError for a name behind `record.` that names nothing, or something of the payload."""
    found = reference(name)
    if found.kind == "payload":
        raise ValueError(f"{BESIDE}.{name}: fields of the payload are columns, without {BESIDE}.")
    return found


def walked(node: Json, resolve: Resolve, ours: frozenset[str] = frozenset()) -> Json:
    """This expression with its columns as DuckDB has them. `ours` are the names that a lambda around it gives. Raises
    ValueError with what of it is not allowed."""
    kind = node["class"]
    if kind not in _KEYS or kind == "TYPE":
        raise ValueError(f"{sql_words.CALLED.get(kind, kind)} is not allowed: {ROW_WISE}")
    _known(node)
    if kind == "COLUMN_REF":
        parts = node["column_names"]
        return {**node, "alias": "", "column_names": list(parts) if parts[0].lower() in ours else resolve(parts)}
    if kind == "FUNCTION":
        _check_function(node)
        return {**node, "alias": "", "arguments": [_argument(one, resolve, ours) for one in node["arguments"]]}
    if kind == "OPERATOR" and node["type"] not in _OPERATORS:
        raise ValueError(f"{node['type']} is not allowed: {ROW_WISE}")
    if kind == "LAMBDA":
        return _lambda(node, resolve, ours)
    if kind == "CASE":
        checks = [{name: walked(one[name], resolve, ours) for name in one} for one in node["case_checks"]]
        return {**node, "alias": "", "case_checks": checks, "else_expr": walked(node["else_expr"], resolve, ours)}
    if kind == "CAST":
        _check_type(node["type_expr"])
    parts = [name for name in ("left", "right", "input", "lower", "upper", "child") if name in node]
    inner: Json = {name: walked(node[name], resolve, ours) for name in parts}
    if "children" in node:
        inner["children"] = [walked(one, resolve, ours) for one in node["children"]]
    return {**node, "alias": "", **inner}


def _lambda(node: Json, resolve: Resolve, ours: frozenset[str]) -> Json:
    """Without the word lambda it is `note->'$.a'`: a part of JSON in a text."""
    if node["syntax_type"] == "LAMBDA_KEYWORD":
        return {**node, "alias": "", "expr": walked(node["expr"], resolve, ours | _parameters(node))}
    sides = {name: walked(node[name], resolve, ours) for name in ("lhs", "expr")}
    return {**node, "alias": "", **sides}


def _argument(given: Json, resolve: Resolve, ours: frozenset[str]) -> Json:
    """Of a struct, what a field is called is said twice."""
    return {**given, "expression": {**walked(given["expression"], resolve, ours), "alias": given["name"]}}


def _expressions(select: Select) -> Iterator[Json]:
    for item in select.items:
        if item["class"] == "STAR":
            yield from expanded(item)[1].values()
        else:
            yield item
    if select.condition is not None:
        yield select.condition


def _unreadable(text: str, read: Json) -> str:
    if read["error_type"] == "not implemented":
        return f"is no SELECT: write SELECT … FROM {TABLE}"
    if not str(read.get("position", "")).isdigit():
        return f"cannot be read: {read['error_message']}"
    place = int(read["position"])
    before = text.encode()[:place].decode(errors="ignore")
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    return f"cannot be read at line {line}, character {column}: {read['error_message']}"


def _select(node: Json) -> Select:
    if node["type"] != "SELECT_NODE":
        raise ValueError(f"UNION, EXCEPT and INTERSECT are not allowed: {ROW_WISE}")
    for name, plain in _SELECT.items():
        if node.get(name) != plain:
            raise ValueError(f"{sql_words.CLAUSES.get(name, name)} is not allowed: {ROW_WISE}")
    if unknown := node.keys() - _SELECT.keys() - {"select_list", "from_table", "where_clause"}:
        raise ValueError(f"{min(unknown)} is not allowed: {ROW_WISE}")
    return Select(tuple(node["select_list"]), node["where_clause"], _table(node["from_table"]))


def _table(given: Json) -> str:
    if given["type"] != "BASE_TABLE":
        what = sql_words.SOURCES.get(given["type"], given["type"])
        raise ValueError(f"FROM names {what}, which is not allowed: {ROW_WISE}. Write FROM {TABLE}")
    table = str(given["table_name"])
    names = {"path": [table]} if table.lower() == TABLE else None
    plain = {**_FROM, "qualified_name": names}
    if any(given.get(name) != value for name, value in plain.items()):
        raise ValueError(f"FROM names something else than {TABLE}: no other table, version or sample is allowed")
    if unknown := given.keys() - _FROM.keys() - {"table_name", "alias"} - _PLACE:
        raise ValueError(f"{min(unknown)} is not allowed")
    alias = str(given["alias"] or TABLE)
    if alias.lower() == BESIDE:
        raise ValueError(f"the records cannot be called {BESIDE}: that is what they have beside their fields")
    return alias


def _known(node: Json) -> None:
    kind = node["class"]
    if strange := node.keys() ^ (_BASE | _KEYS[kind]):
        raise ValueError(f"{kind} has a part that is not known: {min(strange)}")


def _check_function(node: Json) -> None:
    name = str(node["function_name"])
    if node["schema"] or node["catalog"]:
        raise ValueError(f"{'.'.join(node['qualified_name']['path'])} is not allowed: name the function alone")
    if name.lower() not in sql_words.FUNCTIONS or node["qualified_name"] != {"path": [name]}:
        raise ValueError(_refused(name.lower()))
    if node["filter"] or node["order_bys"]["orders"] or node["distinct"] or node["export_state"]:
        raise ValueError(f"{name} with DISTINCT, ORDER BY or FILTER is not allowed: {ROW_WISE}")
    if name.lower() in sql_words.PADDING:
        _check_padding(name, node["arguments"])


def _refused(name: str) -> str:
    kinds = asked(
        "SELECT coalesce(string_agg(concat_ws(' ', function_type, stability), ' ' ORDER BY function_type), '')"
        " FROM duckdb_functions() WHERE function_name = ?",
        name,
    )
    if "aggregate" in kinds:
        return f"{name} is not allowed: it works over several records, and {ROW_WISE}"
    if kinds.startswith("table") or name == "unnest":
        return f"{name} is not allowed: it makes several rows, and {ROW_WISE}"
    if kinds and "CONSISTENT" not in kinds.split(" "):
        return f"{name} is not allowed: it does not give the same each time"
    return f"{name} is not among the functions that a statement may use"


def _check_padding(name: str, arguments: Sequence[Json]) -> None:
    literal = arguments[1]["expression"].get("literal", {}) if len(arguments) > 1 else {}
    if literal.get("kind") != "INTEGER" or int(literal["text"]) > sql_words.MAX_PADDED:
        raise ValueError(f"{name} takes a number up to {sql_words.MAX_PADDED} as its length")


def _parameters(node: Json) -> frozenset[str]:
    """Names that a lambda gives."""
    given = node["lhs"]
    several = given["class"] == "FUNCTION" and given["function_name"] == "row"
    parts: list[Any] = [one["expression"] for one in given["arguments"]] if several else [given]
    if any(one["class"] != "COLUMN_REF" or len(one["column_names"]) != 1 for one in parts):
        raise ValueError("a lambda is written lambda x: …")
    names = frozenset(str(one["column_names"][0]).lower() for one in parts)
    if taken := next((one for one in names if one.startswith(OURS)), None):
        raise ValueError(f"{taken} cannot be a name in a lambda")
    return names


def _check_type(node: Json) -> None:
    if node["class"] == "CONSTANT":  # a number of digits
        return
    name = str(node.get("type_name", node["class"]))
    if node["class"] != "TYPE" or name.lower() not in sql_words.TYPES or node["schema"] or node["catalog"]:
        raise ValueError(f"{name} is not among the types that a statement may use")
    _known(node)
    for one in node["children"]:
        _check_type(one)
