"""Steps as documents write them: the shape behind each, and the words of each fault."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import pytest

from connect_core.pipeline.transforms.steps import step_of
from connect_core.rows.types import as_written, struct_of

ROWS = {
    "id": "int64",
    "user": {"name": "text", "first name": "text", "at": {"zip": "text"}},
    "tags": ["text"],
    "a.b": "date",
    "amount": "decimal(12,2)",
}
USER = ROWS["user"]


def behind(given: Any, rows: dict[str, Any] = ROWS) -> Any:
    return list(as_written(step_of(given).after(struct_of(rows))).items())


def shape(**fields: Any) -> Any:
    return list(fields.items())


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            {"rename": {"id": "no", "user.at.zip": "code", '"a.b"': '"c.d"'}},
            {
                "no": "int64",
                "user": {"name": "text", "first name": "text", "at": {"code": "text"}},
                "tags": ["text"],
                "c.d": "date",
                "amount": "decimal(12,2)",
            },
        ),
        (
            {"rename": {"user.name": "first name", 'user."first name"': "name"}},
            {**ROWS, "user": {"first name": "text", "name": "text", "at": {"zip": "text"}}},
        ),
        (
            {"drop": ["id", "user.at", "tags", '"a.b"']},
            {"user": {"name": "text", "first name": "text"}, "amount": "decimal(12,2)"},
        ),
        ({"keep": ["amount", '"a.b"']}, {"amount": "decimal(12,2)", "a.b": "date"}),
        (
            {"cast": {"id": "text", "user.name": "timestamp", "amount": "int8"}},
            {**ROWS, "id": "text", "user": {**USER, "name": "timestamp(us)"}, "amount": "int8"},
        ),
        ({"cast": {"tags": ["text"]}}, ROWS),
        (
            {"mask": {"user.name": "redact", "tags": "hash", "amount": "hash"}},
            {**ROWS, "tags": "text", "amount": "text"},
        ),
        (
            {"flatten": "_"},
            {
                "id": "int64",
                "user_name": "text",
                "user_first name": "text",
                "user_at_zip": "text",
                "tags": ["text"],
                "a.b": "date",
                "amount": "decimal(12,2)",
            },
        ),
        (
            {"set": {"id": "{$.id}-{topic[1]}", "user.at.ok": True, "n": 7, "f": 0.5, "t": "x"}},
            {
                **ROWS,
                "id": "text",
                "user": {"name": "text", "first name": "text", "at": {"zip": "text", "ok": "bool"}},
                "n": "int64",
                "f": "float64",
                "t": "text",
            },
        ),
        (
            {"filter": "$.amount > 1 AND $.user.name IS NULL AND $.tags[0] = 'x' AND TAGS = 'a' AND hdr = 'b'"},
            ROWS,
        ),
    ],
)
def test_the_shape_behind_a_step(given: Any, expected: Any) -> None:
    assert behind(given) == list(expected.items())


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"flaten": "_"}, "'flaten' is no step; did you mean flatten? (there are: rename, drop, keep, cast, mask, "),
        ({"drop": ["id"], "keep": ["id"]}, "a step is a mapping with one name, as {drop: [user.mail]}, not 2 names"),
        ("drop", "a step is a mapping with one name, as {drop: [user.mail]}, not 'drop'"),
        ({"drop": ["user.nam"]}, "no field user.nam; did you mean user.name? (there are: id, user, user.name, "),
        ({"drop": ["user.NAME"]}, "no field user.NAME; did you mean user.name?"),
        ({"drop": ["zzzz"]}, 'no field zzzz (there are: id, user, user.name, user."first name", user.at,'),
        ({"drop": ["tags.x"]}, "no field tags.x: tags is [text], and has no fields"),
        ({"drop": ["user.at.zip"]}, "no field is left in user.at: drop user.at itself"),
        ({"drop": ["id", "user", "tags", '"a.b"', "amount"]}, "no field is left in the rows"),
        ({"drop": ["id", '"id"']}, "id is named twice"),
        ({"drop": "id"}, "needs a list, as [user.mail]"),
        ({"drop": ["$.id"]}, "'$.id': a path of a step begins with the name of a field, without $"),
        (
            {"drop": ["user.first name"]},
            "'user.first name' is no path of a field: write user.name, or user.\"first name\" ",
        ),
        ({"drop": ["user..name"]}, "'user..name' is no path of a field"),
        ({"drop": [7]}, "7 is no path of a field"),
        ({"keep": ["user.name"]}, "user.name is inside a field: keep takes top-level fields, drop those within them"),
        ({"keep": ["amont"]}, "no field amont; did you mean amount?"),
        ({"rename": {"id": "user"}}, "two fields have the name user"),
        ({"rename": {"user.name": "first name"}}, 'two fields have the name user."first name"'),
        ({"rename": {"id": ""}}, "id: '' is no name of a field"),
        (
            {"rename": {"user.name": "user.full"}},
            "user.name: a field stays where it is: write its new name alone (full)",
        ),
        ({}, "a step is a mapping with one name, as {drop: [user.mail]}, not {}"),
        ({"rename": {}}, "needs a mapping, as {user.nm: name}"),
        ({"cast": {"tags": "int64"}}, "tags: [text] cannot become int64: objects and lists cannot be cast"),
        ({"cast": {'"a.b"': "int64"}}, '"a.b": date cannot become int64: date can become date, text'),
        ({"cast": {"id": "integer"}}, "id: 'integer' is no type; did you mean int64? (known: bool, "),
        ({"mask": {"amount": "redact"}}, "redact is for text, and amount is decimal(12,2): drop the field"),
        ({"mask": {"amount": "hide"}}, "amount: 'hide' is not redact, hash, {with: VALUE} or {token"),
        ({"flatten": ""}, 'needs the text between the names, as "_"'),
        ({"set": {"id": None}}, "id: null is no truth value, number or text"),
        ({"set": {"id": 1 << 63}}, "id: 9223372036854775808 does not fit into int64"),
        ({"set": {"id": float("nan")}}, "id: JSON has no number nan"),
        ({"set": {"id": "{"}}, "id: the brace at character 1 is not part of a pair"),
        ({"set": {"id": "{$.idd}"}}, "'$.idd' names no field; did you mean $.id? (there are: id, user,"),
        ({"set": {"usr.x": 1}}, "no field usr; did you mean user?"),
        ({"set": {"tags.x": 1}}, "no field tags.x: tags is [text], and has no fields"),
        ({"filter": "$.amount >"}, "is not a condition: it cannot be read at its end"),
        ({"filter": "$.user.nam = 'x'"}, "'$.user.nam' names no field; did you mean $.user.name? (there are in "),
        ({"filter": "$['A.b'] = 'x'"}, "\"$['A.b']\" names no field; did you mean $['a.b']?"),
        ({"filter": "$.id[0] = 'x'"}, "'$.id[0]' names nothing: $.id is int64, no list"),
        ({"filter": "$.tags.x = 'x'"}, "'$.tags.x' names nothing: $.tags is list, without fields"),
        ({"filter": "amount > 100"}, "'amount' names a header; did you mean $.amount? (a header: header:amount)"),
        ({"filter": ["x"]}, "needs a condition, as $.amount > 100"),
    ],
)
def test_a_fault_says_what_is_wrong(given: Any, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        behind(given)


def test_what_steps_name_beside_fields_is_said() -> None:
    assert set(step_of({"filter": "$.id = 1 AND tenant = 'a'"}).references()) == {"$.id", "tenant"}
    names = step_of(
        {"set": {"a": "{$['a.b']}{file:name|payload:text}", "b": "{topic[2]}{header:x}", "c": 1}}
    ).references()
    assert set(names) == {"$['a.b']", "file:name", "payload:text", "topic[2]", "header:x"}
    assert dict(step_of({"drop": ["id"]}).references()) == {}


def test_flatten_that_makes_a_name_twice_is_a_fault() -> None:
    with pytest.raises(ValueError, match="two fields have the name a_b"):
        behind({"flatten": "_"}, {"a": {"b": "text"}, "a_b": "text"})


def test_a_long_list_of_names_is_cut() -> None:
    with pytest.raises(ValueError, match=r"f11 and 8 more\)"):
        behind({"drop": ["zzz"]}, {f"f{place}": "text" for place in range(20)})


def test_documents_are_checked_without_arrow() -> None:
    script = (
        "import sys; from connect_core.pipeline.transforms.steps import step_of; step_of({'filter': '$.a > 1'});"
        " print([name for name in ('pyarrow', 'numpy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
