"""Waybill: replication with receipts. The rooms are described in docs/architecture.md."""

__version__ = "0.1.0"
