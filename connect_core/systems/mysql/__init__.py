"""MySQL and MariaDB: a table as the source or the target of a connector."""
