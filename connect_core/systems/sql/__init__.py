"""Tables of whatever SQLAlchemy reaches: as the source or the target of a connector. SQLite is what is tested."""
