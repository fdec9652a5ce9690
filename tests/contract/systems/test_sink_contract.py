"""Every sink of ours keeps the contract that its author's suite checks."""

from __future__ import annotations

import pytest

from connect_core.sdk.testing.sink_content import ContentContract
from connect_core.sdk.testing.sinks import SinkContract
from tests.contract.systems.cases import SystemCase


class TestEverySink(SinkContract):
    """`target` is one case after the other (conftest.py)."""


class TestWhatEverySinkKeeps(ContentContract):
    @pytest.fixture
    def target(self, keeping: SystemCase) -> SystemCase:
        return keeping
