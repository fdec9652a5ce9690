"""Formats: what they make of payloads, and that any bytes are a record or a reject."""

from __future__ import annotations

import json
import time
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_core.pipeline.digest import pipeline_digest
from connect_core.pipeline.fields import Fields
from connect_core.pipeline.formats.patterns import _PATTERNS, check_groups, known_fields, pattern_of
from connect_core.pipeline.parsing import parser
from connect_core.pipeline.rejecting import MAX_ORIGINAL_BYTES
from connect_core.pipeline.shaping import Pipeline
from connect_core.sdk.templates import reference
from connect_core.sdk.testing.driving import records

COMBINED = (
    b'10.0.0.7 - ann [28/Nov/2026:06:15:02 +0000] "GET /shop?id=7 HTTP/1.1" 500 2326 "https://a.example/" "curl/8.5"'
)
OF_COMBINED = {
    "client": "10.0.0.7",
    "user": "ann",
    "time": "28/Nov/2026:06:15:02 +0000",
    "request": "GET /shop?id=7 HTTP/1.1",
    "method": "GET",
    "path": "/shop?id=7",
    "protocol": "HTTP/1.1",
    "status": "500",
    "bytes": "2326",
    "referer": "https://a.example/",
    "agent": "curl/8.5",
}
CSV = {"format": "csv", "columns": ["site", "temp"]}
GROK = {"format": "grok", "pattern": "^%{TIMESTAMP_ISO8601:at} %{LOGLEVEL:level} +%{IP:from}? ?%{GREEDYDATA:rest}$"}


def parsed(written: dict[str, Any], body: bytes | None) -> Any:
    """The fields, or the reason."""
    payloads, reasons = parser(written)(pa.array([body], pa.binary()))
    assert len(payloads) == 1
    return reasons[0][1] if reasons else payloads[0]


@pytest.mark.parametrize(
    ("written", "body", "made"),
    [
        ({"format": "combined"}, COMBINED, OF_COMBINED),
        (
            {"format": "combined"},
            b'::1 - - [x] "\\x16\\x03" 400 - "-" "a \\"b\\""',
            {"client": "::1", "time": "x", "request": r"\x16\x03", "status": "400", "agent": r"a \"b\""},
        ),
        ({"format": "combined"}, COMBINED + b" more", "It does not match the pattern"),
        (
            {"format": "common"},
            b'h - John Doe [x] "POST /a" 204 0',
            {
                "client": "h",
                "user": "John Doe",
                "time": "x",
                "request": "POST /a",
                "method": "POST",
                "path": "/a",
                "status": "204",
                "bytes": "0",
            },
        ),
        ({"format": "common"}, COMBINED, "It does not match the pattern"),
        (CSV, b'north,"21,5"', {"site": "north", "temp": "21,5"}),
        (CSV, b'"say ""hi""",', {"site": 'say "hi"'}),
        (CSV, b"north", "It has 1 columns and not 2"),
        (CSV, b"", "It has 0 columns and not 2"),
        (CSV, b'north,"21', "It is no CSV: a quotation mark is not closed"),
        ({**CSV, "delimiter": ";"}, b"north;21,5", {"site": "north", "temp": "21,5"}),
        (
            {"format": "logfmt"},
            rb' level=warn msg="it \"broke\"\n" retry http.status=503 empty= ',
            {"level": "warn", "msg": 'it "broke"\n', "retry": "true", "http.status": "503"},
        ),
        ({"format": "logfmt"}, b'a=1 b="open', "It is no logfmt at character 4"),
        ({"format": "logfmt"}, b"=1", "It is no logfmt at character 1"),
        ({"format": "logfmt"}, b"  ", "It has no pair"),
        ({"format": "json"}, b'{"a": 1}', {"a": 1}),
        ({"format": "json"}, b"[1,", "It is no JSON at character 4"),
        ({"format": "json"}, None, "It is no JSON at character 1"),
        ({"format": "regex", "pattern": "id=(?P<id>[0-9]+)(?P<more>x)?"}, b"an id=7 is", {"id": "7"}),
        ({"format": "regex", "pattern": "^(?P<a>.)$"}, "\u00e9".encode(), {"a": "\u00e9"}),
        ({"format": "regex", "pattern": "^(?P<a>.)$"}, b"\xe9", {"a": "\ufffd"}),
        ({"format": "regex", "pattern": "^(?P<a>.)$"}, None, "It does not match the pattern"),
        (
            GROK,
            b"2026-11-28T06:15:02.123Z WARN 10.0.0.7 disk full",
            {"at": "2026-11-28T06:15:02.123Z", "level": "WARN", "from": "10.0.0.7", "rest": "disk full"},
        ),
        (GROK, b"no time WARN", "It does not match the pattern"),
    ],
)
def test_what_a_format_makes(written: dict[str, Any], body: bytes | None, made: Any) -> None:
    assert parsed(written, body) == made


PARSERS = [
    {"format": "json"},
    {"format": "logfmt"},
    {"format": "common"},
    {"format": "combined"},
    CSV,
    GROK,
    {"format": "regex", "pattern": "(?P<all>.*)"},
]


@given(st.sampled_from(PARSERS), st.lists(st.binary(max_size=60) | st.just(COMBINED) | st.none(), min_size=1))
def test_any_bytes_are_a_record_or_a_reject(written: dict[str, Any], bodies: list[bytes | None]) -> None:
    rows = records(list(bodies))
    document = {"parse": written, "rules": [{"name": "all", "keys": "{$.site}{$['a b']}"}]}
    shaped = Pipeline(document).shape(rows)
    assert shaped.rows == len(rows)
    assert not shaped.filtered
    passed = shaped.kept.column("offset").to_pylist()
    assert sorted([*passed, *(one.offset for one in shaped.rejected)]) == list(range(len(rows)))
    assert shaped.kept.column("value").to_pylist() == [bodies[row] for row in passed], "as it was read"
    for one in shaped.rejected:
        assert (one.stage, one.kind, one.original) == ("parse", "NotParsed", bodies[one.offset] or b"")


@given(st.dictionaries(st.from_regex(r"[a-z_.]+", fullmatch=True), st.text(min_size=1), min_size=1))
def test_logfmt_that_was_written_is_read(fields: dict[str, str]) -> None:
    quoted = {name: value.replace("\\", "\\\\").replace('"', '\\"') for name, value in fields.items()}
    assert parsed({"format": "logfmt"}, " ".join(f'{a}="{b}"' for a, b in quoted.items()).encode()) == fields


@pytest.mark.parametrize("name", sorted(_PATTERNS))
def test_each_name_of_grok_is_a_pattern_of_re2(name: str) -> None:
    pattern = f"%{{{name}:field}}"
    check_groups(pattern_of("grok", pattern))
    assert known_fields("grok", pattern, []) == ["field"]


@pytest.mark.parametrize(
    ("written", "body"),
    [
        ({"format": "regex", "pattern": "^(?P<a>(?:(?:a+)+)+)$"}, b"a" * 1_000_000 + b"!"),
        ({"format": "regex", "pattern": "(?P<a>(?:.*)(?:.*)(?:.*)(?:.*)=)"}, b"x" * 1_000_000),
        ({"format": "combined"}, b"x" * 500_000 + b' - - [x] "' + b'\\"' * 500_000),
        ({"format": "logfmt"}, b'a="' + b"\\x" * 500_000),
        ({"format": "logfmt"}, b"a" * 1_000_000 + b'"'),
        (CSV, b'"' * 1_000_001),
    ],
)
def test_no_pattern_and_no_payload_takes_for_ever(written: dict[str, Any], body: bytes) -> None:
    began = time.perf_counter()
    assert isinstance(parsed(written, body), str)
    assert time.perf_counter() - began < 5


def test_rejects_filtered_and_passed_are_told_apart() -> None:
    bodies = [b'{"n": 1}', b"no", b'{"n": 3}', b'{"n": 4}', b"neither"]
    written = {
        "parse": {"format": "json"},
        "filter": {"when": "$.n > 1"},
        "rules": [{"name": "odd", "when": "$.n = 3", "keys": "{$.n}"}],
    }
    shaped = Pipeline(written).shape(records(list(bodies)))
    assert shaped.kept.column("key").to_pylist() == ["3"]
    assert [one.offset for one in shaped.rejected] == [1, 4]
    assert shaped.filtered == (0, 3)
    assert shaped.rejected[0].message == "Not of format json: It is no JSON at character 1"


def test_a_reject_keeps_the_beginning_of_what_was_read() -> None:
    (reject,) = Pipeline({"parse": {"format": "json"}}).shape(records([b"x" * (MAX_ORIGINAL_BYTES + 1)])).rejected
    assert len(reject.original) == MAX_ORIGINAL_BYTES


def test_what_is_behind_a_cut_is_not_rejected_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("connect_core.pipeline.rules.MAX_OUTPUT_BYTES", 1)
    rows = records([b'{"n": 0}', b"no", b'{"n": 2}', b"neither"])
    pipeline = Pipeline({"parse": {"format": "json"}, "rules": [{"name": "a"}, {"name": "b"}]})
    seen: list[int] = []
    while len(rows):
        shaped = pipeline.shape(rows)
        seen += [one.offset for one in shaped.rejected]
        rows = rows.slice(shaped.rows)
    assert seen == [1, 3]


def test_whole_numbers_of_json_keep_their_digits() -> None:
    body = json.dumps({"n": 2**70}).encode()
    payloads, _ = parser({"format": "json"})(pa.array([body]))
    assert Fields(records([body]), None, payloads).column(reference("$.n")).values == [2**70]


def test_a_format_is_part_of_what_a_range_is_pinned_to() -> None:
    digests = {pipeline_digest({}), pipeline_digest({"parse": {"format": "json"}}), pipeline_digest({"parse": CSV})}
    assert len(digests) == 3
