"""What `peek`, `groups translate` and `rules try` open themselves, as long as they are no use cases of `service`."""

from connect_core.service.opened import ledger_exists, reading, surroundings

__all__ = ["ledger_exists", "reading", "surroundings"]
