"""What became of each stage: `unit`, `contract`, `system` and so on are the folders in `tests/`.

At the end of a session that ran tests of several stages, one line a stage and then the names of those that failed.
Written by the session's first process only, after everything else that it has to say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Mapping, Sequence

import pytest

ORDER = ("unit", "contract", "system", "simulator", "hosts", "faults")
FAILED, SKIPPED = "failed", "skipped"
_GRANTED = ("connect_core/sdk/testing/", "tests/hosts/", "tests/mysql.py")
"""Where tests are skipped that nothing is missing for, or nothing that is ours to hold: the suite of Debian that has
MySQL changes each day."""
# What the terminal reporter calls its reports; "" is a phase of a test that went well and is no result.
_KINDS = {
    "passed": "passed",
    "xfailed": "passed",
    "failed": FAILED,
    "xpassed": FAILED,
    "error": FAILED,
    "skipped": SKIPPED,
}


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, None, None]:
    yield
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")
    if terminal is None or hasattr(session.config, "workerinput"):
        return
    counts = counted(terminal.stats)
    if session.config.getoption("--require-servers"):
        counts = with_skipped_servers(counts, terminal.stats)
    if len(counts) > 1:
        terminal.write_sep("=", "stages")
        for line in lines(counts, session.exitstatus == pytest.ExitCode.OK):
            terminal.write_line(line)


def counted(stats: Mapping[str, Sequence[object]]) -> dict[str, Counter[str]]:
    """By stage, how many tests ended in each way. One that failed and then broke in its teardown counts twice."""
    found: dict[str, Counter[str]] = {}
    for name, kind in _KINDS.items():
        for report in stats.get(name, ()):
            found.setdefault(stage(getattr(report, "nodeid", "")), Counter())[kind] += 1
    return found


def with_skipped_servers(
    counts: Mapping[str, Counter[str]], stats: Mapping[str, Sequence[object]]
) -> dict[str, Counter[str]]:
    """The counts where a test that needs a server and was skipped has failed."""
    changed = {name: Counter(count) for name, count in counts.items()}
    for report in stats.get("skipped", ()):
        if lacks_server(report):
            changed[stage(getattr(report, "nodeid", ""))].update({FAILED: 1, SKIPPED: -1})
    return changed


def lacks_server(report: object) -> bool:
    """Of a test that was skipped: it needs a server. One that a contract suite has skipped lacks none: its case says
    that its system has nothing of the kind. Nor does one that lacks hosts: not every kernel lets its user make them.
    Nor does one of MySQL itself."""
    said = getattr(report, "longrepr", None)
    declared = isinstance(said, tuple | list) and any(place in str(said[0]) for place in _GRANTED)
    return "server" in getattr(report, "keywords", ()) and not declared


def stage(nodeid: str) -> str:
    """The folder of a test in `tests/`."""
    parts = nodeid.partition("::")[0].split("/")
    return parts[1] if len(parts) > 2 and parts[0] == "tests" else "other"


def lines(counts: Mapping[str, Counter[str]], ended_well: bool = True) -> list[str]:
    """One for each stage, in order, and a last one that names those that failed. A session may also fail as a whole:
    it was interrupted, or left a process behind."""
    names = sorted(counts, key=lambda name: (ORDER.index(name) if name in ORDER else len(ORDER), name))
    told = [f"{name:10} {_told(counts[name])}" for name in names]
    failed = [name for name in names if counts[name][FAILED]]
    if failed:
        return [*told, f"Failed: {', '.join(failed)}"]
    return [*told, "All stages passed" if ended_well else "No test failed, but the session did: see above"]


def _told(count: Counter[str]) -> str:
    words = [f"{count[kind]:,} {kind}" for kind in (FAILED, "passed", SKIPPED) if count[kind]]
    return ", ".join(words)
