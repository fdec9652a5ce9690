"""Which tables a document means, by names and patterns. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from connect_core.sdk.values import Json

OURS = "waybill_"
"""So the tables begin that Waybill keeps for itself, which no pattern means."""
_WILD = frozenset("*?[")


class NamedTables(NamedTuple):
    """SCHEMA.TABLE each, or a pattern of these, where neither `*` nor `?` means the point."""

    wanted: Sequence[str]
    excluded: Sequence[str] = ()

    def mean(self, table: str) -> bool:
        if any(_fits(table, one) for one in self.excluded):
            return False
        ours = table.rpartition(".")[2].startswith(OURS)
        return table in self.exactly() or (not ours and any(_fits(table, one) for one in self.wanted))

    def now(self, there: Iterable[str]) -> list[str]:
        """Those that are named, whether they are `there` or not, and those that match a pattern."""
        return [*dict.fromkeys([*self.exactly(), *sorted(filter(self.mean, there))])]

    def exactly(self) -> list[str]:
        """Those that are no pattern, each once, and are not excluded."""
        named = dict.fromkeys(one for one in self.wanted if not _WILD & set(one))
        return [one for one in named if not any(_fits(one, other) for other in self.excluded)]


def _fits(table: str, pattern: str) -> bool:
    (within, name), (of, one) = table.split(".", 1), pattern.split(".", 1)
    return fnmatchcase(within, of) and fnmatchcase(name, one)


def names_of(source: Json, split: Callable[[str], tuple[str, str]]) -> NamedTables:
    """Which tables these options of a source mean. `split` gives schema and name of one that is written."""
    wanted = source.get("tables") or [source.get("table", "")]
    return NamedTables(*([".".join(split(str(one))) for one in names] for names in (wanted, source.get("exclude", ()))))
