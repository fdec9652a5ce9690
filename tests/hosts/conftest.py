"""Other hosts for tests of this folder: see `hosts`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.hosts.hosts import Network, why_not


@pytest.fixture
def network() -> Iterator[Network]:
    if why := why_not():
        pytest.skip(why)
    with Network() as made:
        yield made
