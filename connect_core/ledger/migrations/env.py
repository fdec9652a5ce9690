"""Alembic's entry: runs the migrations on the connection that `schema.upgrade` hands over, inside its transaction."""

from alembic import context

from connect_core.ledger.tables import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    render_as_batch=True,  # SQLite cannot alter most things of a table: it is copied
)
with context.begin_transaction():
    context.run_migrations()
