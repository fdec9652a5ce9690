"""Which tables a document means, by names and patterns. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple, TypeAlias

from connect_core.errors import ConfigError
from connect_core.sdk.values import Json

OURS = "waybill_"
"""So the tables begin that Waybill keeps for itself, which no pattern means."""
Parents: TypeAlias = Mapping[str, Sequence[str]]
"""By table those that have its rows as well, since it inherits from them."""
NO_PARENTS: Parents = {}
_WILD = frozenset("*?[")


class NamedTables(NamedTuple):
    """SCHEMA.TABLE each, or a pattern of these, where neither `*` nor `?` means the point; TABLE alone of a database
    without schemas."""

    wanted: Sequence[str]
    excluded: Sequence[str] = ()

    def mean(self, table: str) -> bool:
        return table in self.exactly() or self.match(*_place(table))

    def match(self, within: str, name: str) -> bool:
        """Of a schema and a table in it, which may have points in their names: whether a pattern means it."""
        if name.startswith(OURS) or any(_fits(within, name, one) for one in self.excluded):
            return False
        return any(_fits(within, name, one) for one in self.wanted)

    def now(self, there: Iterable[str], parents: Parents = NO_PARENTS) -> list[str]:
        """Those that are named, whether they are `there` or not, and those that match a pattern and are no part of
        another one."""
        matching = (one for one in there if self.mean(one) and not self.parent_of(one, parents))
        return [*dict.fromkeys([*self.exactly(), *sorted(matching)])]

    def parent_of(self, table: str, parents: Parents) -> str:
        """One that is meant, too, and has the rows of this one; empty where there is none."""
        return next(filter(self.mean, parents.get(table, ())), "")

    def exactly(self) -> list[str]:
        """Those that are no pattern, each once, and are not excluded."""
        named = dict.fromkeys(one for one in self.wanted if not _is_pattern(one))
        return [one for one in named if not any(_fits(*_place(one), other) for other in self.excluded)]

    def patterns(self) -> list[str]:
        return [*dict.fromkeys(filter(_is_pattern, self.wanted))]


def fits(table: str, pattern: str) -> bool:
    return _fits(*_place(table), pattern)


def _is_pattern(name: str) -> bool:
    return bool(_WILD & set(name))


def _place(table: str) -> tuple[str, str]:
    within, _, name = table.rpartition(".")
    return within, name


def _fits(within: str, name: str, pattern: str) -> bool:
    of, one = _place(pattern)
    return fnmatchcase(within, of) and fnmatchcase(name, one)


def names_of(source: Json, split: Callable[[str], tuple[str, str]]) -> NamedTables:
    """Which tables these options of a source mean. `split` gives schema and name of one that is written."""
    wanted = source.get("tables") or [source.get("table", "")]
    both = (wanted, source.get("exclude", ()))
    return NamedTables(*([whole_name(*split(str(one))) for one in names] for names in both))


def whole_name(within: str, name: str) -> str:
    return f"{within}.{name}" if within else name


def read_twice(table: str, parent: str) -> ConfigError:
    words = f"The table inherits from {parent}, which is read, too: its rows come with those of that one"
    return ConfigError(words, where=table, next_step="Name only one of them")
