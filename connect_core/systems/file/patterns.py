"""Names of files, without looking at one: which a pattern means, and which the rotation that gave a name gives too."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

_STAMP = re.compile(r"[0-9a-f]{16,}|[0-9]+")
"""What changes from one name to the next: numbers, dates, and the long hexadecimal times of daemontools."""
_SEPARATORS = frozenset(".-_")
"""One of these stands between the stem of a name and what rotation adds to it."""
_USUAL = frozenset({".old", ".older", ".bak", ".prev", ".previous", ".last", "~"})
"""What is added to the name of a log, too, where one or two old files are kept."""
_ENDINGS = frozenset({".gz", ".gzip", ".zst", ".zstd", ".bz2", ".lz4"})
_COUNTER_DIGITS = 3
"""A number of up to so many digits counts files; a longer one is a time, and always as long."""


def matches(path: str, pattern: str) -> bool:
    """Whether the file pattern names `path`; `**` stands for any number of folders."""
    return _matches(path.split("/"), pattern.split("/"))


def _matches(path: Sequence[str], pattern: Sequence[str]) -> bool:
    if not pattern:
        return not path
    if pattern[0] == "**":
        return any(_matches(path[begin:], pattern[1:]) for begin in range(len(path) + 1))
    return bool(path) and fnmatchcase(path[0], pattern[0]) and _matches(path[1:], pattern[1:])


def first_in(pattern: str) -> str:
    """The path up to its first wildcard, if there is one: what stands before its last slash is the folder in which the
    pattern begins."""
    parts = pattern.split("/")
    first = next((number for number, part in enumerate(parts) if glob.has_magic(part)), len(parts) - 1)
    return "/".join(parts[: first + 1])


def without_links(pattern: str) -> str:
    """The pattern with the symbolic links resolved that stand before its first wildcard."""
    if not glob.has_magic(pattern):
        return os.path.realpath(pattern)
    parts = pattern.split("/")
    first = next(i for i, part in enumerate(parts) if glob.has_magic(part))
    return "/".join([os.path.realpath("/".join(parts[:first]) or "/"), *parts[first:]])


def without_ending(path: str) -> str:
    """The path without what compression adds to it."""
    stem, ending = os.path.splitext(path)
    return stem if ending in _ENDINGS else path


@dataclass(frozen=True)
class Addition:
    """What rotation has added to the own name of a log: behind all of it ("name", `app.log.1`), or behind its "stem"
    (`app-1.log`)."""

    text: str
    to: str

    @classmethod
    def of_name(cls, name: str, own: str) -> Addition | None:
        """None where `name` is another one."""
        stem, extension = os.path.splitext(own)
        if name != own and name.startswith(own):
            return cls(name[len(own) :], "name")
        text = name[len(stem) : -len(extension)] if extension and name.endswith(extension) else ""
        return cls(text, "stem") if name.startswith(stem) and text[:1] in _SEPARATORS else None

    def changes(self) -> bool:
        """Whether it holds a number or a date."""
        return bool(_STAMP.search(self.text))

    def is_usual(self) -> bool:
        return self.changes() or (self.to == "name" and self.text in _USUAL)

    def may_go_with(self, other: Addition) -> bool:
        """Whether one rotation may add both: where one has no number, neither has the other, perhaps."""
        return self.to == other.to and (self.is_usual() or (not other.changes() and self.text[:1] in _SEPARATORS))


@dataclass(frozen=True)
class Scheme:
    """The names that one rotation gives to the files of one log, learnt from a file that got one of them.

    `of` says what of them is the log's own name: all of it, "name" (`app.log.1`), its "stem" (`app-1.log`), or nothing,
    "other" (`current` becomes `@400000006743c1f6.s`).
    """

    names: re.Pattern[str]
    of: str

    @classmethod
    def learnt(cls, name: str, own: Sequence[str]) -> Scheme | None:
        """From a file that was one of `own` names and is `name` now; None when nothing in that changes with time, so
        that there is no other file of the kind."""
        for one in own:
            if addition := Addition.of_name(name, one):
                stem, extension = os.path.splitext(one) if addition.to == "stem" else (one, "")
                return cls._between(stem, addition.text, extension, addition.to)
        return cls._between("", name, "", "other")

    @classmethod
    def _between(cls, before: str, stamp: str, behind: str, of: str) -> Scheme | None:
        if not _STAMP.search(stamp):
            return None
        parts, at = [re.escape(before)], 0
        for found in _STAMP.finditer(stamp):
            parts += [re.escape(stamp[at : found.start()]), _like(found.group())]
            at = found.end()
        parts += [re.escape(stamp[at:]), re.escape(behind)]
        return cls(re.compile("".join(parts)), of)

    def numbers(self, name: str) -> tuple[int, ...] | None:
        """What stands in the name where names differ; None for a name that is not one of these."""
        found = self.names.fullmatch(name)
        return tuple(int(part, 16 if len(part) >= 16 else 10) for part in found.groups()) if found else None

    def counts(self) -> bool:
        """Whether the names differ in nothing but one small number."""
        return self.names.groups == 1 and f"{{1,{_COUNTER_DIGITS}}}" in self.names.pattern


def _like(stamp: str) -> str:
    if len(stamp) <= _COUNTER_DIGITS:
        return f"([0-9]{{1,{_COUNTER_DIGITS}}})"
    return f"([0-9a-f]{{{len(stamp)}}})" if len(stamp) >= 16 else f"([0-9]{{{len(stamp)}}})"
