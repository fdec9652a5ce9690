"""Alembic migrations of the ledger, run by `connect_core.ledger.schema` only."""
