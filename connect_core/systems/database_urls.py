"""URLs of databases, as SQLAlchemy has them: which file, or which server, one names. Pure, and light."""

from __future__ import annotations

import re

_FILE = re.compile(r"sqlite:///(?P<path>[^?#]+)")
"""The database of SQLite is a file. Of other databases that are files no URL is taken (`require_host`)."""


def file_of(url: str) -> str:
    """The path of the file that a URL names, as it is written; empty where it names none."""
    found = _FILE.fullmatch(url)
    return found["path"] if found else ""


def url_of_file(path: str) -> str:
    return f"sqlite:///{path}"
