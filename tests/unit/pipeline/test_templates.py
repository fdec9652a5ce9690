"""Templates: places that each record fills."""

from __future__ import annotations

import pyarrow as pa
import pytest

from connect_core.pipeline import rules
from connect_core.pipeline.fields import Fields
from connect_core.sdk.records import encode_headers
from connect_core.sdk.templates import reference, template
from connect_core.sdk.testing.driving import records

ROWS = records(
    [b'{"id": 7, "t": 21.50, "on": true, "o": {"a": [1]}, "a}b": "z"}', b"no json"],
    topic=["site/kiln/temp", "x"],
    headers=[encode_headers([("x-1", "v")]), None],
    key=["k", None],
    tags=["t", ""],
)


@pytest.mark.parametrize(
    ("text", "first", "second"),
    [
        ("plain", "plain", "plain"),
        ("{topic}", "site/kiln/temp", "x"),
        ("{topic[2]}-{$.id}", "kiln-7", "-"),
        ("new/{topic[2:]}", "new/kiln/temp", "new/"),
        ("{topic[1:]}|{topic[3:]}|{topic[4:]}", "site/kiln/temp|temp|", "x||"),
        ("{$.t} {$.on} {$.o}", '21.5 true {"a":[1]}', "  "),
        ("{header:x-1}", "v", ""),
        ("{KEYS}/{TAGS}", "k/t", "/"),
        ("{key}/{tags}", "k/t", "/"),
        ("{header:no|$.id|topic}", "7", "x"),
        ("{$['a|b']|header:no|header:x-1}", "v", ""),
        ("{header:x-1[1:]}{header:x-1[2]}{KEYS[1]}", "vk", ""),
        ("{{{$.id}}}", "{7}", "{}"),
        ("{$['a}b']}", "z", ""),
        ("{file:path}|{file:name}|{file:offset}", "/logs/app/x.log|x.log|0", "/logs/app/x.log|x.log|1"),
        ("{file:path[3]}/{file:path[3:]}/{file:name[2]}", "app/app/x.log/", "app/app/x.log/"),
        ("<{payload:text}>", f"<{ROWS.column('value')[0].as_py().decode()}>", "<no json>"),
        ("", "", ""),
    ],
)
def test_each_record_fills_its_places(text: str, first: str, second: str) -> None:
    filled = rules.filled(template(text), Fields(ROWS, "/logs/app/x.log"), pa.array([1, 0, 1]))
    one = template(text)
    assert ([one.fixed] * 3 if one.fixed is not None else filled.to_pylist()) == [second, first, second]


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "a}",
        "{id}",
        "{topic[0]}",
        "{topic[:2]}",
        "{}",
        "{$}",
        "{$.a b}",
        "{header:}",
        "{header:x[0]}",
        "{key|}",
        "{payload:json}",
        "{payload:text[2]}",
        "{file:size}",
        "{file:offset[1]}",
        "{file:}",
    ],
)
def test_a_place_that_names_nothing_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"names nothing|is not part of a pair"):
        template(text)


@pytest.mark.parametrize(
    "number",
    [
        "9007199254740993",
        "18446744073709551615",
        "18446744073709551616",
        "18446744073709551617",
        "-9223372036854775808",
        "-9223372036854775809",
        "-9223372036854775810",
        "1" + "0" * 60,
    ],
)
def test_a_whole_number_keeps_its_digits_however_large_it_is(number: str) -> None:
    """Two different ones would be one key."""
    row = records([b'{"id": %s, "o": {"a": [%s, "\xc3\xa9", 1.5]}}' % (number.encode(), number.encode())])
    filled = rules.filled(template("{$.id} {$.o}"), Fields(row), pa.array([0]))
    assert filled.to_pylist() == [f'{number} {{"a":[{number},"é",1.5]}}']


@pytest.mark.parametrize("deep", [900, 1023])
def test_a_payload_that_is_nested_deep_ends_nothing(deep: int) -> None:
    row = records([b'{"id": 123456789012345678901, "o": ' + b"[" * deep + b"]" * deep + b"}"])
    filled = rules.filled(template("{$.id}"), Fields(row), pa.array([0]))
    assert filled.to_pylist()[0] in ("123456789012345678901", "")


def test_the_text_of_a_payload_is_any_bytes() -> None:
    rows = Fields(records([b"caf\xc3\xa9", b"caf\xe9", b"", None]))
    assert rows.column(reference("payload:text")).values == ["caf\u00e9", "caf\ufffd", "", None]


def test_what_is_of_no_file_has_none() -> None:
    filled = rules.filled(template("<{file:path}{file:name}{file:offset}>"), Fields(ROWS), pa.array([0]))
    assert filled.to_pylist() == ["<>"]
