"""Attempts at one connector, with the engine of the command, until one ends well."""

from __future__ import annotations

from typing import Any

from tests.faults.kit.journeys import TRY_AGAIN
from tests.faults.kit.processes import ended
from tests.site import Site

ATTEMPTS = 12
KILLED = -9
"""By a fault that an attempt before did not reach."""


def start(site: Site, connector: str, *words: str) -> Any:
    return site.start("run", connector, "--engine", "inline", *words)


def attempt(site: Site, connector: str, *words: str) -> int:
    """The exit code."""
    with start(site, connector, *words) as driver:
        return ended(driver)


def run_until_done(site: Site, connector: str) -> None:
    codes = []
    for _ in range(ATTEMPTS):
        codes.append(attempt(site, connector))
        if codes[-1] == 0:
            return
        assert codes[-1] in (*TRY_AGAIN, KILLED), codes
    raise AssertionError(f"not done after {ATTEMPTS} attempts: {codes}")
