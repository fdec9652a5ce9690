"""Every source of ours keeps the contract that its author's suite checks."""

from connect_core.sdk.testing.sources import SourceContract


class TestEverySource(SourceContract):
    """`system` is one case after the other (conftest.py)."""
