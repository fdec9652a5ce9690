"""What a pattern with `*`, `?`, `[...]` and `**` matches, as `glob` does it, but for links within `**`.

They are followed, and each folder is entered once: `glob` enters it by every name that it has through links, and where
two links lead back to a folder above them it never comes to an end.
"""

from __future__ import annotations

import glob
import heapq
import os
from collections.abc import Iterator


def expanded(pattern: str) -> list[str]:
    parts = pattern.split("/")
    if "**" not in parts:
        return glob.glob(pattern)
    first = parts.index("**")
    before, behind = "/".join(parts[:first]), "/".join(parts[first + 1 :]) or "*"
    bases = glob.glob(before) if glob.has_magic(before) else [before or ("/" if first else "")]
    folders = dict.fromkeys(folder for base in bases for folder in _below(base))
    return [path for folder in folders for path in expanded(os.path.join(glob.escape(folder), behind))]


def _below(base: str) -> Iterator[str]:
    """The folder and those below it but hidden ones: each by the name that needs no link, else by the first of them."""
    seen, waiting, links = set[tuple[int, int]](), [base], list[str]()
    while waiting or links:
        folder = waiting.pop() if waiting else heapq.heappop(links)
        try:
            status = os.stat(folder or ".")
            known = (status.st_dev, status.st_ino) in seen
            inner = [] if known else _folders_in(folder)
        except OSError:  # as `glob` does with what is no folder, or may not be listed
            continue
        if known:
            continue
        seen.add((status.st_dev, status.st_ino))
        yield folder
        for path, linked in inner:
            if linked:
                heapq.heappush(links, path)
            else:
                waiting.append(path)


def _folders_in(folder: str) -> list[tuple[str, bool]]:
    """Their paths, and whether each is a link."""
    with os.scandir(folder or ".") as entries:
        shown = [entry for entry in entries if not entry.name.startswith(".")]
    found = [(os.path.join(folder, entry.name), entry.is_symlink()) for entry in shown]
    return [(path, linked) for path, linked in found if os.path.isdir(path)]
