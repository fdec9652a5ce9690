"""Which tests `make test` runs: every mechanism once. `make faults` runs the others, too.

Of `make test` are

- all unit tests, and all contract tests that need no server;
- of a contract test that needs one, one choice;
- of all other tests those that a guard names, which turn red without the mechanism that it takes out, one choice of
  each unless it names more; the first test of a file, where none of a guard has shown already that its servers do what
  they should; and the tests of the demo, which share what one demo has left.

A person who names files or tests gets all of them: only `--tier` chooses.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import pytest

from tests.guards import patches

TEST, REST = "test", "rest"
_WHOLE = ("tests/unit/", "tests/system/demo/")
_CONTRACT = "tests/contract/"


class Collected(NamedTuple):
    name: str
    """As pytest names it, with its choice in brackets."""
    needs_server: bool
    is_fault: bool
    """`tests.faults.rows` chooses among its choices, and `make faults` makes a row of each."""

    @property
    def function(self) -> str:
        return self.name.partition("[")[0]

    @property
    def file(self) -> str:
        return self.name.partition("::")[0]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--tier", choices=(TEST, REST), help="what `make test` runs of all tests, or the rest but for rows"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    tier = config.getoption("--tier")
    if tier is None:
        return
    tests = [_collected(item) for item in items]
    within = of_make_test(tests, {red for guard in patches.every() for red in guard.red})
    kept = [
        within[number] if tier == TEST else not (within[number] or one.is_fault) for number, one in enumerate(tests)
    ]
    config.hook.pytest_deselected(items=[item for item, is_kept in zip(items, kept, strict=True) if not is_kept])
    items[:] = [item for item, is_kept in zip(items, kept, strict=True) if is_kept]


def of_make_test(tests: Sequence[Collected], named: Collection[str]) -> list[bool]:
    """Of each of all tests, in order. `named` are those that guards name, by function or by choice."""
    functions_named = {name.partition("[")[0] for name in named}
    files_named = {name.partition("::")[0] for name in named}
    first_functions = {test.file: test.function for test in reversed(tests)}
    others = [test for test in reversed(tests) if not test.is_fault]  # a choice that costs much is marked as a fault
    first_choices = {test.function: test.name for test in others}
    first_tests = {test.file: test.name for test in others}

    def is_chosen(test: Collected) -> bool:
        is_first = first_choices.get(test.function) == test.name
        if test.name.startswith(_WHOLE) or test.name in named:
            return True
        if test.name.startswith(_CONTRACT):
            return is_first or not test.needs_server
        is_named = test.function in functions_named if test.is_fault else is_first and test.function in named
        if is_named or (test.needs_server and test.file in files_named):
            return is_named
        return test.function == first_functions[test.file] if test.is_fault else first_tests.get(test.file) == test.name

    return [is_chosen(test) for test in tests]


def _collected(item: pytest.Item) -> Collected:
    marks = (item.get_closest_marker(name) is not None for name in ("server", "fault"))
    return Collected(item.nodeid, *marks)
