"""Text to plain data with line numbers, or the first thing that is not the format."""

from __future__ import annotations

from pathlib import Path

import pytest

from connect_core.config.written import MAX_FILE_BYTES, read_paths, read_text
from connect_core.errors import ConfigError


def _error(text: str, suffix: str = ".yaml") -> str:
    with pytest.raises(ConfigError) as raised:
        read_text(text, where="x", suffix=suffix)
    return str(raised.value)


def test_scalars_are_what_people_expect() -> None:
    text = "[no, on, 010, 0x1F, 12:30, 2024-01-01, 1_000, .inf, 1e3, 2.5, -3, true, False, null, ~, '5']"
    (written,) = read_text(text, where="x")
    words = ["no", "on", "010", "0x1F", "12:30", "2024-01-01", "1_000", ".inf"]
    assert written.data == [*words, 1000.0, 2.5, -3, True, False, None, None, "5"]


def test_every_value_has_its_line() -> None:
    (written,) = read_text("a: 1\nb:\n  c: [1,\n      2]\n", where="x")
    assert written.line(("b", "c")) == 3
    assert written.line(("b", "c", 1)) == 4
    assert written.line(("b", "missing", "deeper")) == 2, "the nearest value around it"


def test_a_file_may_hold_several_documents() -> None:
    first, second = read_text("a: 1\n---\n---\nb: 2\n", where="x")
    assert (first.data, second.data) == ({"a": 1}, {"b": 2})
    assert (first.where, second.where) == ("x (document 1)", "x (document 2)")
    assert second.line(("b",)) == 4


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: 1\nb: 2\na: 3\n", 'line 3, column 1: the key "a" appears twice (first in line 1)'),
        ("a: {b: 1, b: 2}", 'line 1, column 11: the key "b" appears twice'),
        ("a: [1, 2", "line 1, column 9"),
        ("a:\n\t- 1", "line 2, column 1: found character '\\t'"),
        ("a: &x 1\nb: *x\n", "line 2, column 4: anchors and aliases are not accepted"),
        ("a: !!python/object/apply:os.system [ls]", "line 1, column 4"),
        ("? [a]\n: 1", "line 1, column 3: a key must be plain text"),
        ("a: " + "[" * 60, "nested too deeply"),
        ("a: \x01", "position 3"),
    ],
)
def test_broken_yaml_is_told_with_its_place(text: str, words: str) -> None:
    assert words in _error(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"a": 1,}', "line 1, column 9"),
        ('{"a": 1, "a": 2}', 'the key "a" appears twice'),
        ("", "line 1, column 1"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_broken_json_is_told(text: str, words: str) -> None:
    assert words in _error(text, ".json")


def test_json_has_lines_too_even_with_tabs() -> None:
    (spaces,) = read_text('{\n "a": {\n  "b": 1}}', where="x", suffix=".json")
    (tabs,) = read_text('{\n\t"a": "\\u00e9"}', where="x", suffix=".json")
    assert spaces.line(("a", "b")) == 3
    assert tabs.data == {"a": "é"}


def test_properties() -> None:
    text = "# one\n! two\n\na = 1 \nb:2\nc d e\nlong=x;\\\n   y\n"
    (written,) = read_text(text, where="x", suffix=".properties")
    assert written.data == {"a": "1", "b": "2", "c": "d e", "long": "x;y"}
    assert written.line(("long",)) == 7


@pytest.mark.parametrize(
    ("text", "data"),
    [
        (r"url=tcp\://localhost\:1883", {"url": "tcp://localhost:1883"}),
        (r"secret = abc\=\=", {"secret": "abc=="}),
        (r"secret=abc==", {"secret": "abc=="}),
        (r"topic=caf\u00e9\uD83D\uDE00", {"topic": "caf\u00e9\U0001f600"}),
        (r"file=/data/a\ b.log", {"file": "/data/a b.log"}),
        (r"a\ b\=c\:d e", {"a b=c:d": "e"}),
        ("a=C\\:\\\\x\\\\\nb=2", {"a": "C:\\x\\", "b": "2"}),
        ("a=1\\\\\\\n  2\nb=3", {"a": "1\\2", "b": "3"}),
        ("a=1\\\n# 2\r\nb=3\\", {"a": "1# 2", "b": "3"}),
        (r"a=\t\n\r\f\x\$", {"a": "\t\n\r\fx$"}),
        ("a=1 \t\rb=\\   \nc=", {"a": "1", "b": " ", "c": ""}),
        ("a=x\u0085y\u2028z\x0bq", {"a": "x\u0085y\u2028z\x0bq"}),
        ("a   :   = b", {"a": "= b"}),
        ("a\tb # c", {"a": "b # c"}),
        ("\f # no=comment of ours\n  ! another\\\na=1", {"a": "1"}),
    ],
)
def test_properties_are_read_as_java_does(text: str, data: dict[str, str]) -> None:
    (written,) = read_text(text, where="x", suffix=".properties")
    assert written.data == data


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (r"secret=\u12", "line 1: \\u is followed by four hexadecimal digits"),
        (r"secret=\uD83Dhush", "line 1: half of a character"),
        ("a=1\n=hush", "line 2: not of the form key=value"),
    ],
)
def test_what_java_refuses_in_properties_is_told_without_its_words(text: str, fault: str) -> None:
    told = _error(text, ".properties")
    assert fault in told
    assert "hush" not in told


def test_broken_properties_are_told() -> None:
    assert "line 2: not of the form key=value" in _error("a=1\nnothing\n", ".properties")
    assert 'line 2: the key "a" appears twice (first in line 1)' in _error("a=1\na=2\n", ".properties")


def test_paths_are_files_and_folders(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text("b: 1")
    (tmp_path / "a.json").write_text('{"a": 1}')
    (tmp_path / "notes.txt").write_text("not a document")
    written, faults = read_paths([tmp_path])
    assert ([one.data for one in written], faults) == ([{"a": 1}, {"b": 1}], [])


def test_all_unreadable_files_are_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "bytes.yaml").write_bytes(b"a: \xff")
    (tmp_path / "large.yaml").write_bytes(b"#" * (MAX_FILE_BYTES + 1))
    (tmp_path / "sound.yaml").write_text("a: 1")
    names = ("bytes.yaml", "large.yaml", "gone.yaml", "sound.yaml")
    written, faults = read_paths([tmp_path / name for name in names])
    assert [one.data for one in written] == [{"a": 1}]
    told = "; ".join(map(str, faults))
    assert "bytes.yaml: The file is not UTF-8 text" in told
    assert "large.yaml: The file is larger than 1048576 bytes" in told
    assert "gone.yaml: The file cannot be read: No such file or directory" in told
