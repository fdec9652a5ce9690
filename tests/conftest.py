"""What every test may use: real servers, homes on them, an empty ledger, and the choice and record of faults."""

import gc
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from connect_core import masking

# A sixth of what the imports take would go into looking for garbage that is not there. Until all is collected.
gc.disable()

pytest_plugins = (
    "tests.distribution",
    "tests.made_ledgers",
    "tests.stages",
    "tests.tiers",
    "tests.statements",
    "tests.servers",
    "tests.site",
    "tests.native_client",
    "tests.apicurio",
    "tests.postgres_tables",
    "tests.mariadb",
    "tests.mysql",
    "tests.prometheus",
    "tests.mqtt_brokers",
    "tests.rocketmq_mqtt.broker",
    "tests.faults.rows",
    "tests.faults.kit.fixtures",
)

# Time is no criterion here: other processes share the machine. `make test` has the same examples each time, `make
# faults` takes the second, and looks for others.
for _profile, _examples in {"waybill": 25, "thorough": 300}.items():
    settings.register_profile(
        _profile,
        deadline=None,
        max_examples=_examples,
        database=None,
        derandomize=_profile == "waybill",
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.load_profile("waybill")

_LONGEST = ("demo", "test_dynamic_topics")
"""Folders and files that take longest."""


@pytest.fixture(scope="session")
def empty_ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite ledger with current tables. Made once: a test copies it instead of migrating one of its own."""
    from connect_core.ledger import upgrade

    path = tmp_path_factory.mktemp("ledger") / "ledger.db"
    upgrade(f"sqlite:///{path}")
    return path


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What has been made until here stays to the end: tests do not look for garbage in it."""
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(autouse=True)
def _nothing_is_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process remembers for its life what references stood for; each test is one of its own."""
    monkeypatch.setattr(masking, "_known", masking._Known())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest comes first, so that it does not end alone."""
    items.sort(key=lambda item: not {item.path.parent.name, item.path.stem} & {*_LONGEST})
