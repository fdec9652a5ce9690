"""What `make test` runs of all tests, and that nothing is in neither of both tiers."""

from __future__ import annotations

import pytest

from tests.tiers import Collected, of_make_test


def chosen(*tests: Collected, named: frozenset[str] = frozenset()) -> list[str]:
    return [test.name for test, is_chosen in zip(tests, of_make_test(tests, named), strict=True) if is_chosen]


def of(name: str, *, server: bool = True, fault: bool = False) -> Collected:
    return Collected(name, server, fault)


UNIT = [of("tests/unit/test_a.py::test_one[1]", server=False), of("tests/unit/test_a.py::test_one[2]", server=False)]
DEMO = [of("tests/system/demo/test_a.py::test_one"), of("tests/system/demo/test_a.py::test_two[x]")]
SYSTEM = [of(f"tests/system/test_a.py::{name}") for name in ("test_one", "test_two[x]", "test_two[y]", "test_three")]
CONTRACT = [
    of("tests/contract/test_a.py::TestIt::test_one[memory]", server=False),
    of("tests/contract/test_a.py::TestIt::test_one[file]", server=False),
    of("tests/contract/test_a.py::TestIt::test_one[topic]"),
    of("tests/contract/test_a.py::TestIt::test_two[topic]"),
    of("tests/contract/test_a.py::TestIt::test_two[table]"),
]
FAULTS = [of(f"tests/faults/test_a.py::{name}", fault=True) for name in ("test_one[x]", "test_one[y]", "test_two[x]")]


def test_without_a_server_the_first_test_of_a_file_is_there_too() -> None:
    first, second = (of(f"tests/simulator/test_a.py::{name}", server=False) for name in ("test_one", "test_two"))
    assert chosen(first, second, named=frozenset({second.name})) == [first.name, second.name]


@pytest.mark.parametrize("tests", [UNIT, DEMO])
def test_all_that_is_quick_and_all_of_one_demo(tests: list[Collected]) -> None:
    assert chosen(*tests) == [test.name for test in tests]


def test_of_a_file_the_tests_that_a_guard_names_and_else_the_first_one() -> None:
    first, two_x, two_y, three = (test.name for test in SYSTEM)
    assert chosen(*SYSTEM) == [first]
    assert chosen(*SYSTEM, named=frozenset({three})) == [three]
    assert chosen(*SYSTEM, named=frozenset({"tests/system/test_a.py::test_two"})) == [two_x]
    assert chosen(*SYSTEM, named=frozenset({two_y})) == [two_y]


def test_of_a_contract_each_choice_without_a_server_and_else_one() -> None:
    names = [test.name for test in CONTRACT]
    assert chosen(*CONTRACT) == [names[0], names[1], names[3]]
    assert chosen(*CONTRACT, named=frozenset({names[4]})) == [names[0], names[1], names[3], names[4]]


def test_a_choice_that_costs_much_is_not_the_one() -> None:
    costly, cheap = of("tests/contract/test_b.py::test_one[1]", fault=True), of("tests/contract/test_b.py::test_one[2]")
    assert chosen(costly, cheap) == [cheap.name]


def test_the_choice_of_a_fault_is_left_to_its_seed() -> None:
    one_x, one_y, two_x = (test.name for test in FAULTS)
    assert chosen(*FAULTS) == [one_x, one_y]
    assert chosen(*FAULTS, named=frozenset({two_x})) == [two_x]
    assert chosen(FAULTS[2], *FAULTS[:2], named=frozenset({one_y})) == [one_x, one_y]
    assert chosen(FAULTS[2], *FAULTS[:2]) == [two_x]
