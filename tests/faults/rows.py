"""The fault matrix as tests: which choices of each fault are run, from which seed, and what each row told.

A fault test is marked `fault` and parametrized like any other. `--faults one` (the default) keeps one choice of each
test function, `--faults all` keeps them all. A choice with a mark of its own, `pytest.mark.fault(costly=True)`, is made
only with all; so is a whole function or module that has it, and a choice of any other test. It is for what takes long,
where a quicker test of `make test` shows the same mechanism. What is chosen at random comes from `seeded`, which
depends on `--seed` and the test's name only, so that a row can be run again exactly.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field

import pytest

SEED_OF_ONE = 1
"""`make test` chooses the same rows every time; `make faults` takes a new seed."""
PROPERTY = "fault-row"


@dataclass
class FaultRow:
    """What one fault did. `lost`, `repeated` and `reordered` count records of the target against the source;
    `duplicates` is what the receipts tell of repeats. `condition` names the stated condition a repeat falls under."""

    fault: str = ""
    where: str = ""
    database: str = ""
    lost: int | None = None
    repeated: int | None = None
    reordered: int | None = None
    duplicates: int | None = None
    seconds: float | None = None
    condition: str = ""
    _broken_at: float = field(default=0.0, repr=False)

    def describe(self, fault: str, *, where: str = "", database: str = "") -> None:
        """Says in words what is done (`SIGKILL of the worker, before its receipt`), in which direction, on what."""
        self.fault, self.where, self.database = fault, where, database

    def strikes(self) -> None:
        """The fault happens now."""
        self._broken_at = time.monotonic()

    def moves_again(self) -> None:
        """A receipt has been settled behind the fault."""
        self.seconds = round(time.monotonic() - self._broken_at, 1)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--faults", choices=("one", "all"), default="one", help="one choice of each fault, or all")
    parser.addoption("--seed", type=int, default=SEED_OF_ONE, help="of everything that fault tests choose at random")
    parser.addoption("--kills", type=int, default=10, help="how often the row of repeated kills kills its broker")


def pytest_report_header(config: pytest.Config) -> str:
    return f"faults: {config.getoption('--faults')} of each, seed {config.getoption('--seed')}"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--faults") == "all":
        return
    choices: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("fault"):
            choices.setdefault(item.nodeid.partition("[")[0], []).append(item)
    seed = config.getoption("--seed")
    meant = {name: found for name, several in choices.items() if (found := _meant(several, config))}
    kept = {id(random.Random(f"{seed} {name}").choice(several)) for name, several in meant.items()}
    left_out = [item for several in choices.values() for item in several if id(item) not in kept]
    if left_out and not _named(config):
        gone = {id(item) for item in left_out}
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if id(item) not in gone]


def _meant(items: list[pytest.Item], config: pytest.Config) -> list[pytest.Item]:
    """The choices that do not cost much; of a test that somebody names, as `make guards` does, any."""
    cheap = [item for item in items if not any(mark.kwargs.get("costly") for mark in item.iter_markers("fault"))]
    return cheap or (items if any("::" in argument for argument in config.args) else [])


def _named(config: pytest.Config) -> bool:
    """A person who names a test by its choice gets that one."""
    return any("[" in argument for argument in config.args)


@pytest.fixture
def seeded(request: pytest.FixtureRequest) -> random.Random:
    """Random choices of this test, the same for the same seed."""
    return random.Random(f"{request.config.getoption('--seed')} {request.node.nodeid}")


@pytest.fixture
def row(record_property: Callable[[str, object], None]) -> Iterator[FaultRow]:
    """This test's row in docs/faults.md; the test fills it in."""
    row = FaultRow()
    yield row
    told = asdict(row)
    del told["_broken_at"]
    record_property(PROPERTY, told)
