"""PostgreSQL: a table as the target of a connector."""
