"""PostgreSQL: a table as the source or the target of a connector."""
