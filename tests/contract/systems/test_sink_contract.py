"""Every sink of ours keeps the contract that its author's suite checks."""

from connect_core.sdk.testing.sinks import SinkContract


class TestEverySink(SinkContract):
    """`target` is one case after the other (conftest.py)."""
