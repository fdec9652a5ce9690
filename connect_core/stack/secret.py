"""Secrets of a home: each made once, in a file that only its owner can read, never in the record of the stack.

They reach servers and clients through environments or these files, never through a command line, which everybody sees.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import tempfile
from collections.abc import Callable
from pathlib import Path


def kept(path: Path, make: Callable[[], str] = lambda: secrets.token_urlsafe(32)) -> str:
    """What is in the file; made first when there is none. Parts that start side by side all get the same."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, fresh = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "w") as file:
                file.write(make())
            with contextlib.suppress(FileExistsError):
                os.link(fresh, path)  # whole, and never over one that is there already
        finally:
            os.unlink(fresh)
    return path.read_text().strip()
