"""The guards themselves: every patch still fits, and every named test is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.guards.__main__ import not_green, not_red
from tests.guards.patches import ROOT, Guard, apply, every, is_there
from tests.guards.verdicts import Ending

RED = "tests/unit/sdk/test_scan.py::test_nothing_found_is_small"


def test_a_guard_fits_the_code() -> None:
    assert {guard.name: refused for guard in every() if (refused := apply(guard, ROOT, "--check"))} == {}


def test_a_guard_names_tests_that_are_there() -> None:
    assert [f"{guard.name}: {test}" for guard in every() for test in guard.red if not is_there(test)] == []


def test_each_guard_has_a_test_that_make_test_runs(request: pytest.FixtureRequest) -> None:
    """So nothing that a guard takes out is missed before `make faults`, whatever is marked `costly`."""
    config = request.config
    if config.args != config.getini("testpaths") or config.option.markexpr or config.option.keyword:
        pytest.skip("not all tests are here")
    run = {item.nodeid for item in request.session.items}
    run |= {name.partition("[")[0] for name in run}
    assert [guard.name for guard in every() if not run & {*guard.red}] == []


@pytest.mark.parametrize(
    "head", ["", "# rule: 5\n# red: x\n", "# takes out: a\n# red: x\n", "# rule: 5\n# takes out: a\n", "# role: 5\n"]
)
def test_a_patch_that_does_not_say_what_it_is_is_refused(head: str, tmp_path: Path) -> None:
    path = tmp_path / "some.patch"
    path.write_text(f"{head}diff --git a/x b/x\n")
    with pytest.raises(ValueError, match="some"):
        Guard.read(path)


def test_a_patch_that_does_not_fit_is_told(tmp_path: Path) -> None:
    path = tmp_path / "some.patch"
    path.write_text(f"# rule: 5\n# takes out: a\n# red: {RED}\n--- a/none.py\n+++ b/none.py\n@@ -1 +1 @@\n-a\n+b\n")
    assert "none.py" in apply(Guard.read(path), ROOT, "--check")


def test_a_test_that_is_not_there_is_noticed() -> None:
    assert is_there(RED)
    assert is_there(f"{RED}[choice]")
    assert not is_there("tests/unit/sdk/test_scan.py::test_of_nothing")
    assert not is_there("tests/unit/no_file.py::test_nothing_found_is_small")
    inherited = "tests/contract/systems/test_sink_contract.py::TestEverySink"
    assert is_there(f"{inherited}::test_floors_that_stand_are_kept[file]")
    assert not is_there(f"{inherited}::test_of_nothing")
    assert is_there("tests/contract/systems/test_kits.py::TestACommitSink::test_ordinary_rows_are_fit")


def test_one_failed_choice_is_red_and_green_is_all_of_them() -> None:
    endings = {"t::a[1]": Ending("passed"), "t::a[2]": Ending("failed"), "t::ab": Ending("passed")}
    assert not_red(["t::a"], endings) == []
    assert not_red(["t::ab"], endings) == ["t::ab stays green"]
    assert len(not_green(["t::a", "t::ab", "t::none"], endings)) == 2


def test_what_breaks_around_a_test_is_neither() -> None:
    endings = {"t::a[1]": Ending("broken", "ImportError"), "t::a[2]": Ending("failed")}
    assert not_red(["t::a"], endings) == ["t::a is broken: ImportError"]
    assert not_red(["t::none"], endings) == ["t::none is broken: it did not run"]
    assert len(not_green(["t::a"], endings)) == 1
