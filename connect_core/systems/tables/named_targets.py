"""What a document may say of several tables as the targets of its rules. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches

from connect_core.sdk.kits.refused import RowsRefused
from connect_core.sdk.plugin import Conflict, RuleTarget
from connect_core.sdk.values import Json

WholeName = Callable[[str], str]
"""A table with the schema or the database that is meant where none is written."""


def unfit_target(target: RuleTarget, checked: Callable[[str], str], markers: str, whole_name: WholeName) -> str:
    """What is wrong with a table that a rule names, in words; empty for nothing. `checked` raises ValueError for what
    is no name of a table, `markers` is the table of markers."""
    if target.pattern is not None:
        return "names a table by what a record has; tables are named as they are: write a rule for each"
    try:
        name = whole_name(checked(target.for_topic("")))
    except ValueError as error:
        return str(error)
    if name.rpartition(".")[2] == whole_name(markers).rpartition(".")[2]:
        return "is the name of the table of markers: rows cannot go among these"
    return ""


@contextmanager
def naming(table: str) -> Iterator[None]:
    """Who hears of a row that a table refuses hears which of several tables that was; empty: there is one."""
    try:
        yield
    except RowsRefused as refusal:
        if not table or f"of table {table.rpartition('.')[2]} " in refusal.what:
            raise
        raise RowsRefused(refusal.kind, f"{refusal.what} (table {table})") from None


def unnamed_table(sink: Json, system: str, whole_name: WholeName) -> Conflict | None:
    """A table that the options say something of, and to which nothing goes: a name that is misspelt there would leave
    its table with all fields of the records."""
    targets = {whole_name(str(table)): str(table) for table in (sink.get("table"), *sink["rule_topics"])}
    for table in sink.get("tables") or ():
        if whole_name(str(table)) not in targets:
            near = get_close_matches(str(table), targets.values(), n=1)
            meant = f": is it {near[0]}?" if near else ""
            words = f"no rule names this table, and it is not the sink's own{meant}"
            return Conflict(("sink", system, "tables", str(table)), words)
    return None
