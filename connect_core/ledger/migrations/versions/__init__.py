"""One module for each schema version, numbered."""
