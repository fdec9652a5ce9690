"""docs/delivery-rules.md agrees with the code, the tests and the guards: every rule that is cited is on the page, and
everything that the page names exists. The lists of guards are generated (`make docs`)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.guards.page import PAGE, PARTS, parts, rules, with_guards
from tests.guards.patches import ROOT, every, is_there

TEXT = PAGE.read_text()
RULES = rules(TEXT)
GUARDS = every()
FILES = [
    path
    for folder, suffix in (("connect_core", "py"), ("jobs", "py"), ("dags", "py"), ("tests", "py"), ("docs", "md"))
    for path in sorted((ROOT / folder).rglob(f"*.{suffix}"))
    if path != Path(__file__)  # it has examples
]
OF_THE_DOCUMENT = ("connect_core/config/", "connect_core/pipeline/", "docs/rules.md")
"""Here "rule 2" may be a rule of a connector document; "delivery rule 2" never is."""

_NO_GUARD = "none, because "
_LINK = re.compile(r"\[`([^`]+)`\]\(([^)]+)\)")
_CITED = re.compile(
    r"\b(delivery[\s#]+)?rules?[\s#]+(\d+(?:(?:,?\s+(?:and|to|or)\s+|,\s*|\s*-\s*)\d+)*)\b", re.IGNORECASE
)


class Citation(NamedTuple):
    numbers: list[int]
    is_delivery_rule: bool


def citations(text: str) -> Iterator[Citation]:
    """Every place where a text names one or several rules by number, also across the end of a line."""
    for match in _CITED.finditer(text):
        numbers: list[int] = []
        for joint, number in re.findall(r"(\D*)(\d+)", match[2]):
            through = "to" in joint or "-" in joint
            numbers += range(numbers[-1] + 1, int(number) + 1) if through else [int(number)]
        yield Citation(numbers, match[1] is not None)


def missing(text: str, *, of_the_document: bool = False) -> set[int]:
    """The rules that a text cites and that are not on the page. A text about rules `of_the_document` cites a delivery
    rule only where it says "delivery rule"."""
    cited = (one for one in citations(text) if one.is_delivery_rule or not of_the_document)
    return {number for one in cited for number in one.numbers} - RULES.keys()


def links(rule: int, part: str) -> list[tuple[str, str]]:
    return _LINK.findall(parts(RULES[rule])[part])


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_every_rule_that_is_cited_is_on_the_page() -> None:
    lost = {
        _name(path): gone
        for path in FILES
        if (gone := missing(path.read_text(), of_the_document=_name(path).startswith(OF_THE_DOCUMENT)))
    }
    assert lost == {}


def test_every_citation_says_that_it_is_a_delivery_rule() -> None:
    bare = {
        _name(path)
        for path in FILES
        if path != PAGE and not _name(path).startswith(OF_THE_DOCUMENT)
        if any(not one.is_delivery_rule for one in citations(path.read_text()))
    }
    assert bare == set()


@pytest.mark.parametrize("number", RULES)
def test_a_rule_has_all_of_its_parts(number: int) -> None:
    assert tuple(parts(RULES[number])) == PARTS
    assert all(parts(RULES[number]).values())
    assert links(number, "Code")
    assert links(number, "Tests")


@pytest.mark.parametrize("number", RULES)
def test_the_code_of_a_rule_is_there(number: int) -> None:
    assert [path for path, _ in links(number, "Code") if not (ROOT / path).is_file()] == []


@pytest.mark.parametrize("number", RULES)
def test_the_tests_of_a_rule_are_there(number: int) -> None:
    assert [test for test, _ in links(number, "Tests") if not is_there(test)] == []


@pytest.mark.parametrize("number", RULES)
def test_a_link_leads_to_what_it_says(number: int) -> None:
    named = links(number, "Code") + links(number, "Tests")
    assert [text for text, target in named if target != f"../{text.partition('::')[0]}"] == []


def test_every_rule_of_a_guard_is_on_the_page() -> None:
    assert {guard.name: guard.rules for guard in GUARDS if not RULES.keys() >= set(guard.rules)} == {}


@pytest.mark.parametrize("number", RULES)
def test_a_rule_has_a_guard_or_says_why_not(number: int) -> None:
    has_one = any(number in guard.rules for guard in GUARDS)
    assert has_one != parts(RULES[number])["Guards"].startswith(_NO_GUARD)


def test_every_guard_is_listed_under_its_rules() -> None:
    assert with_guards(TEXT, GUARDS) == TEXT, "run make docs"


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("(rule 6)", [6]),
        ("Rules 3, 5, 11 and 12.", [3, 5, 11, 12]),
        ("delivery rules 1 to 3", [1, 2, 3]),
        ("rules 1-3, 26", [1, 2, 3, 26]),
        ("# a delivery\n    # rule 7", [7]),
        ("the rules of 6 documents, # rule: 6, rules[6]", []),
    ],
)
def test_citations_are_recognised(text: str, numbers: list[int]) -> None:
    assert [number for one in citations(text) for number in one.numbers] == numbers
    assert all(one.is_delivery_rule == ("delivery" in text) for one in citations(text))


def test_a_rule_that_is_not_on_the_page_is_noticed() -> None:
    unknown = max(RULES) + 1
    assert missing(f"delivery rules 1 and {unknown}") == {unknown}
    assert missing(f"rule {unknown}") == {unknown}
    assert missing(f"rule {unknown}", of_the_document=True) == set()


def test_a_list_of_guards_that_is_out_of_date_is_written_anew() -> None:
    assert with_guards(TEXT, GUARDS[1:]) != TEXT
    assert with_guards(with_guards(TEXT, GUARDS[1:]), GUARDS) == TEXT


def test_a_number_that_is_given_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="twice"):
        rules(TEXT + RULES[1])
