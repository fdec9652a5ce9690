"""The system `mysql_changes`: a stream of what happens to rows, by the binary log (docs/mysql-changes.md)."""
