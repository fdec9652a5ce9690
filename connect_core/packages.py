"""What installed packages bring of their own, by entry point: systems, functions of rows, formats of payloads.

Each entry is loaded by itself, and no earlier than it is named: a package that is broken harms whoever names what it
brings, and nobody else. What is loaded stays, and with the version that its package had then, until `reload`: Python
keeps modules while packages are replaced on disk, so what is installed and what runs are two things here.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import NamedTuple, TypeVar

from connect_core.errors import ContractBroken, Retriable
from connect_core.origin import know_package, origin_of

SYSTEMS, FUNCTIONS, FORMATS = "waybill.systems", "waybill.transforms", "waybill.formats"
GROUPS = (SYSTEMS, FUNCTIONS, FORMATS)
"""Of entry points. `FUNCTIONS` are steps `python` of `transforms`."""

_WORDS = {SYSTEMS: "system", FUNCTIONS: "function", FORMATS: "format"}

Found = TypeVar("Found")


@dataclass(frozen=True)
class Brought:
    """One entry of an installed package. `rivals` are other packages that bring the same name."""

    entry: EntryPoint
    rivals: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.entry.name

    @property
    def package(self) -> str:
        return self.entry.dist.name if self.entry.dist else self.entry.module.partition(".")[0]

    @property
    def version(self) -> str:
        return self.entry.dist.version if self.entry.dist else ""

    @property
    def release(self) -> str:
        """Its package with the version, as `waybill-iban 1.0`."""
        return f"{self.package} {self.version}".strip()

    def broken(self, why: str) -> ContractBroken:
        return ContractBroken(
            f"The package {self.release}, which brings the {_WORDS[self.entry.group]} {self.name}, is broken: {why}",
            where=f"entry point {self.name} of {self.entry.group}, {sys.executable}",
            next_step="Correct the package and install it again, or uninstall it; `waybill plugins` shows all of them",
        )


class _Loaded(NamedTuple):
    found: object
    release: str
    modules: frozenset[str]
    """Its package, and others beside it that the same installation has: their top-level names."""


class Replaced(NamedTuple):
    """A package whose version that ran is another one than that which is installed now: empty where it is gone."""

    name: str
    before: str
    now: str


_loaded: dict[tuple[str, str], _Loaded] = {}


def brought(group: str) -> dict[str, Brought]:
    """What is installed now, by name. Loads nothing."""
    found: dict[str, list[EntryPoint]] = {}
    for entry in entry_points(group=group):
        found.setdefault(entry.name, []).append(entry)
    return {
        name: Brought(first, tuple(Brought(other).release for other in others))
        for name, (first, *others) in sorted(found.items())
    }


def loaded(one: Brought, kind: type[Found], check: Callable[[Found], str] = lambda _: "") -> Found:
    """What the entry names, from the first time on the same. `check` says what is wrong with it. Raises ContractBroken
    for whatever keeps it from being used: the package is to blame, and nothing else is harmed."""
    known = _loaded.get((one.entry.group, one.name))
    if known is not None and isinstance(known.found, kind):
        return known.found
    if one.rivals:
        raise one.broken(f"so does {' and so does '.join(one.rivals)}; uninstall all but one")
    know_package(one.entry.module, one.name)
    try:
        with redirect_stdout(sys.stderr):  # what a command answers, as JSON above all, is its own
            found = one.entry.load()
        wrong = check(found) if isinstance(found, kind) else f"{one.entry.value} is no {kind.__name__}"
    except (Exception, SystemExit) as error:
        raise one.broken(_words_of(error)) from None
    if wrong:
        raise one.broken(wrong)
    _loaded[one.entry.group, one.name] = _Loaded(found, one.release, _modules(one.entry))
    made: Found = found
    return made


def named(group: str, name: str, kind: type[Found], check: Callable[[Found], str] = lambda _: "") -> Found | None:
    """What is loaded already under a name, else what an installed package brings; None where none does. Raises
    ContractBroken."""
    known = _loaded.get((group, name))
    if known is not None and isinstance(known.found, kind):
        return known.found
    one = brought(group).get(name)
    return loaded(one, kind, check) if one else None


def releases(group: str) -> dict[str, str]:
    """Package and version by name: of what is loaded that which runs, of all else that which is installed."""
    installed = {name: one.release for name, one in brought(group).items() if one.entry.dist is not None}
    return installed | {name: one.release for (of, name), one in _loaded.items() if of == group}


def running(group: str, name: str) -> str:
    """Package and version of what is loaded under a name; empty where nothing is."""
    known = _loaded.get((group, name))
    return known.release if known else ""


def modules() -> dict[str, int]:
    """By package and version of what is loaded how many of its modules are."""
    return {
        one.release: sum(1 for module in sys.modules if module.partition(".")[0] in one.modules)
        for one in _loaded.values()
    }


def mixed(before: Mapping[str, int]) -> list[Replaced]:
    """Packages that are replaced by now and of which modules were loaded since `before`, an answer of `modules`: what
    ran meanwhile may have been of both versions. What was loaded as a whole before goes on as it was."""
    now = modules() if _loaded else {}
    return [one for one in replaced() if now[one.before] != before.get(one.before)]


def mixed_error(mixed: Iterable[Replaced], where: str) -> Retriable:
    words = ", ".join(f"{one.name}: {one.before} by {one.now or 'nothing'}" for one in mixed)
    return Retriable(
        f"A package was replaced during the run, and parts of it were loaded since ({words})",
        where=where,
        next_step="The next attempt takes what is installed then, and looks in the target first",
    )


def replaced() -> list[Replaced]:
    """What runs here in another version than it is installed now."""
    if not _loaded:
        return []
    installed = {(group, name): one.release for group in GROUPS for name, one in brought(group).items()}
    return [
        Replaced(name, one.release, installed.get((group, name), ""))
        for (group, name), one in sorted(_loaded.items())
        if installed.get((group, name), "") != one.release
    ]


def reload() -> list[Replaced]:
    """Has what was replaced loaded anew when it is named next. What holds on to the former one goes on with it: ask
    between two pieces of work. Other packages that these use stay as they are."""
    importlib.invalidate_caches()
    found = replaced()
    gone = {one.name for one in found}
    tops = {top for (_, name), one in _loaded.items() if name in gone for top in one.modules}
    for key in [key for key, one in _loaded.items() if one.modules & tops]:
        del _loaded[key]
    for module in [one for one in sys.modules if one.partition(".")[0] in tops]:
        del sys.modules[module]
    return found


def _words_of(error: BaseException) -> str:
    """The error with its place: nothing of a record can be in it."""
    words = f"{type(error).__name__}: {error}"
    place = origin_of(error)
    return f"{words} ({place.place})" if place.package else words


def _modules(entry: EntryPoint) -> frozenset[str]:
    files = (entry.dist.files if entry.dist else None) or ()
    tops = {file.parts[0].removesuffix(".py") for file in files if file.suffix == ".py" and ".." not in file.parts}
    return frozenset({*tops, entry.module.partition(".")[0]} - {"connect_core"})
