"""What a session says of each stage at its end."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import pytest

from tests import stages


@dataclass(frozen=True)
class Report:
    nodeid: str
    keywords: dict[str, int] = field(default_factory=dict)
    longrepr: tuple[str, int, str] | None = None


UNIT = Report("tests/unit/cli/test_a.py::test_a[1]")
SYSTEM = Report("tests/system/test_b.py::test_b", {"server": 1})
FILE = Report("tests/contract/ledger/test_c.py")


@pytest.mark.parametrize(
    ("nodeid", "name"),
    [
        (UNIT.nodeid, "unit"),
        (FILE.nodeid, "contract"),
        ("tests/test_top.py::test_a", "other"),
        ("elsewhere/unit/x.py", "other"),
        ("", "other"),
    ],
)
def test_a_stage_is_a_folder_of_tests(nodeid: str, name: str) -> None:
    assert stages.stage(nodeid) == name


def test_what_failed_is_named_in_the_last_line() -> None:
    stats = {"": [UNIT, UNIT], "passed": [UNIT, SYSTEM], "failed": [SYSTEM], "error": [FILE], "warnings": [object()]}
    assert stages.lines(stages.counted(stats)) == [
        "unit       1 passed",
        "contract   1 failed",
        "system     1 failed, 1 passed",
        "Failed: contract, system",
    ]


def test_a_skipped_server_fails_its_stage_where_servers_are_required() -> None:
    stats = {"passed": [UNIT], "skipped": [SYSTEM, UNIT]}
    counts = stages.counted(stats)
    assert stages.lines(counts)[-1] == "All stages passed"
    assert stages.lines(stages.with_skipped_servers(counts, stats)) == [
        "unit       1 passed, 1 skipped",
        "system     1 failed",
        "Failed: system",
    ]


def test_what_a_case_says_that_its_system_has_not_lacks_no_server() -> None:
    said = "/here/connect_core/sdk/testing/sources.py", 85, "Skipped: the case has no way to break its source"
    stats = {"skipped": [Report(SYSTEM.nodeid, {"server": 1}, said)]}
    counts = stages.with_skipped_servers(stages.counted(stats), stats)
    assert stages.lines(counts)[-1] == "All stages passed"
    assert stages.lacks_server(Report(SYSTEM.nodeid, {"server": 1}, ("/here/tests/servers.py", 9, "Skipped: no java")))


def test_where_no_hosts_can_be_made_no_server_is_missing() -> None:
    said = "/here/tests/hosts/conftest.py", 14, "Skipped: hosts on one machine need root"
    assert not stages.lacks_server(Report("tests/hosts/test_spark.py::test", {"server": 1}, said))


def test_a_session_that_was_interrupted_did_not_pass() -> None:
    assert stages.lines({"unit": Counter({"passed": 1})}, ended_well=False)[-1].startswith("No test failed, but")


def test_a_stage_of_another_name_comes_last() -> None:
    counts = {name: Counter({"passed": 1000}) for name in ("other", "faults", "unit")}
    assert [line.split()[0] for line in stages.lines(counts)] == ["unit", "faults", "other", "All"]
    assert stages.lines(counts)[0].endswith("1,000 passed")
