"""Regular expressions of Java, and names in other cases."""

from __future__ import annotations

import pytest

from connect_core.config.peers.case_format import converted
from connect_core.config.peers.patterns import java_pattern, replaced


@pytest.mark.parametrize(
    ("pattern", "replacement", "text", "expected"),
    [
        ("(.*)-(.*)", "$2_$1", "a-b", "b_a"),
        ("(?<first>.*)-(.*)", "${first}$2", "a-b", "ab"),
        ("(a)(b)?", "$1$2x", "a", "ax"),
        ("(a)", "$12", "a", "a2"),
        ("a", r"\$\\", "a", "$\\"),
        ("a.b", "x", "a\rb", "a\rb"),
        (r"a\.b", "x", "a.b", "x"),
        ("[.]", "x", "a.b", "axb"),
    ],
)
def test_a_replacement(pattern: str, replacement: str, text: str, expected: str) -> None:
    assert replaced(java_pattern(pattern), replacement, text, once=False) == expected


@pytest.mark.parametrize(
    "pattern",
    [r"\p{Lu}", "a*+", "a&&b", "[[a]b]", "(?i)a", "(?=a)", "(?<!a)b", r"\Qa\E", r"(a)\1", "(", r"\bx", r"\x41"],
)
def test_what_is_read_in_other_ways_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"read by Java|no regular expression"):
        java_pattern(pattern)


@pytest.mark.parametrize("replacement", ["$2", "$", "a\\", "${b}"])
def test_what_is_no_replacement_is_refused(replacement: str) -> None:
    with pytest.raises(ValueError, match=r"replacement|names a group"):
        replaced(java_pattern("(a)"), replacement, "a", once=True)


@pytest.mark.parametrize(
    ("name", "given", "wanted", "expected"),
    [
        ("FIRST_NAME", "UPPER_UNDERSCORE", "LOWER_UNDERSCORE", "first_name"),
        ("first_name", "LOWER_UNDERSCORE", "UPPER_CAMEL", "FirstName"),
        ("first_name", "LOWER_UNDERSCORE", "LOWER_CAMEL", "firstName"),
        ("FirstName", "UPPER_CAMEL", "LOWER_HYPHEN", "first-name"),
        ("firstName", "LOWER_CAMEL", "UPPER_UNDERSCORE", "FIRST_NAME"),
        ("first-name", "LOWER_HYPHEN", "LOWER_CAMEL", "firstName"),
        ("odd_Name", "LOWER_UNDERSCORE", "LOWER_UNDERSCORE", "odd_Name"),
    ],
)
def test_a_name_in_another_case(name: str, given: str, wanted: str, expected: str) -> None:
    assert converted(name, given, wanted) == expected
