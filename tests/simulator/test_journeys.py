"""Journeys from fixed seeds: nothing is lost, repeated or foreign, and a seed gives the same journey every time."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter

import pytest

from tests.simulator.focus import FOCI, focused
from tests.simulator.plans import ROUTES
from tests.simulator.running import travelled, travelled_again

FIRST_SEED, JOURNEYS = 20_001, 25
OF_EACH, OF_EACH_IN_GUARDS = 3, 40
"""Any change of the product gives its seeds other journeys: a guard looks at so many that one of them shows what it has
taken out."""


def test_what_was_given_arrives() -> None:
    broken, happened = {}, Counter[str]()
    for seed in range(FIRST_SEED, FIRST_SEED + 2 * JOURNEYS, 2):
        result = travelled(seed)
        happened.update(result.counts)
        if result.problems:
            broken[seed] = result.problems
    assert broken == {}, "step by step: python -m tests.simulator --replay SEED"
    for source, sink in ROUTES:
        assert happened[f"from {source} to {sink}"], "nothing was tried"


@pytest.mark.parametrize("name", sorted(FOCI))
def test_where_one_thing_happens_often(name: str, pytestconfig: pytest.Config) -> None:
    """On the code of before each defect was mended, some of these seeds show it; the guards say which."""
    in_guards = pytestconfig.pluginmanager.hasplugin("tests.guards.verdicts")
    for seed in range(1, (OF_EACH_IN_GUARDS if in_guards else OF_EACH) + 1):
        found = travelled(seed, focused(name, seed)).problems
        assert found == (), f"step by step: python -m tests.simulator --focus {name} --replay {seed}"


def test_a_seed_gives_the_same_journey_in_every_process() -> None:
    """Also with other hashes of strings, on which the order of sets depends, and with files elsewhere."""
    seed = next(seed for seed in range(FIRST_SEED, FIRST_SEED + JOURNEYS, 2) if len(travelled_again(seed)[0]) > 600)
    command = [sys.executable, "-m", "tests.simulator", "--replay", str(seed)]
    other = os.environ | {"PYTHONHASHSEED": "1"}
    told = subprocess.run(command, env=other, capture_output=True, text=True).stdout.splitlines()
    assert [line for line in told if not line.startswith("BROKEN")] == travelled_again(seed)[0]
