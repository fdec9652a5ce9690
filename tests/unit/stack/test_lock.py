"""The lock: complete for each release of Python that it is for, whichever of them runs the tests."""

from importlib.metadata import distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[3]


def _locked() -> set[str]:
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    return {canonicalize_name(Requirement(line).name) for line in lines if "==" in line}


@pytest.mark.parametrize("release", ["3.11.0", "3.11.2", "3.11.3", "3.11.14"])
def test_what_a_locked_package_requires_is_locked(release: str) -> None:
    """Debian 12 has 3.11.2, and some packages need another one before 3.11.3."""
    locked, environment = _locked(), {"python_full_version": release, "python_version": "3.11", "extra": ""}
    missing = [
        f"{package.name} requires {requirement.name}"
        for package in distributions()
        if canonicalize_name(package.name) in locked
        for requirement in map(Requirement, package.requires or ())
        if requirement.marker is None or requirement.marker.evaluate(environment)
        if canonicalize_name(requirement.name) not in locked
    ]
    assert missing == []
