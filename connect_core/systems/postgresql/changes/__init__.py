"""The system `postgresql_changes`: a stream of what happens to rows, by logical decoding (docs/change-streams.md)."""
