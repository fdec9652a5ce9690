"""Contract suites for the authors of systems; they need pytest and hypothesis.

class TestMySink(SinkContract):
    @pytest.fixture
    def target(self, tmp_path): return MyCase(tmp_path)
"""

import pytest

pytest.register_assert_rewrite(
    "connect_core.sdk.testing.sinks",
    "connect_core.sdk.testing.sink_content",
    "connect_core.sdk.testing.sources",
    "connect_core.sdk.testing.kits",
    "connect_core.sdk.testing.keyed_sinks",
    "connect_core.sdk.testing.log_sources",
    "connect_core.sdk.testing.received",
    "connect_core.sdk.testing.log_sinks",
    "connect_core.sdk.testing.commits",
)
