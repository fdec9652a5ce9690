"""A query in the place of a table: its rows are those of a derived table, `FROM (query) AS q`. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from connect_core.errors import ConfigError, DataError, Refused
from connect_core.sdk.plugin import ProbeResult
from connect_core.systems.tables.probed_rows import EACH_RUN_READS_ALL

PARTITION = "query"
"""Its only one. No table is called so: these have a point."""
RECREATED, CHANGED = "recreated", "the query was changed, or which of its columns tell rows apart"
_OF_TEXT, _OF_ALL = 6, 10
"""Letters of an origin: of what the document says, and of the tables, too."""


def relation(query: str) -> str:
    """What stands behind FROM. The line feed ends a comment."""
    return f"(\n{query}\n) AS q"


def origin_of(said: str, tables: str) -> str:
    """Names a query and its columns, and the tables whose place another one may take."""
    return _digest(said)[:_OF_TEXT] + _digest(f"{said}/{tables}")[:_OF_ALL]


def why_another(before: str, origin: str, *, is_query: bool) -> str:
    """Two origins that differ."""
    return CHANGED if is_query and before[:_OF_TEXT] != origin[:_OF_TEXT] else RECREATED


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def missing_column(name: str, option: str, where: str) -> ConfigError:
    step = f"Give one of its columns this name (AS {name}), or name another one as {option}"
    return ConfigError(f"The query has no column {name}", where=where, next_step=step)


def unfit_column(name: str, kind: str, where: str) -> ConfigError:
    step = "The pages on tables have the types that are kept exactly. Cast it in the query, or leave it out"
    return ConfigError(f"Column {name} of the query is {kind}, which is not kept exactly", where=where, next_step=step)


def not_whole(name: str, kind: str, cast: str, where: str) -> ConfigError:
    words = f"Column {name} of the query is {kind}, and incrementing needs whole numbers"
    return ConfigError(words, where=where, next_step=f"Name another one, or cast it in the query: {cast}")


def no_moment(name: str, kind: str, kinds: str, where: str) -> ConfigError:
    words = f"Column {name} of the query is {kind}, which says no time of a change"
    return ConfigError(words, where=where, next_step=f"Name a column of type {kinds}, the latter written in UTC")


def not_taken(said: str, where: str) -> ConfigError:
    """`said` are the database's words where it judges the text: they quote the query, and no row."""
    step = "Write one SELECT that only reads, without a semicolon: it becomes FROM (query) AS q"
    return ConfigError(f"The database does not take the query: {said}", where=where, next_step=step)


def not_allowed(said: str, step: str, where: str) -> Refused:
    """`said` names what the user may not read."""
    return Refused(f"The user may not read all of the query: {said}", where=where, next_step=step)


def not_computed(kind: str, where: str) -> DataError:
    """The database's own words may quote a value."""
    step = "Correct the query, so that it has a value for each row (NULLIF, CASE), or correct the row"
    return DataError(f"The database cannot compute a row of the query: {kind}", where=where, next_step=step)


def query_probed(ids: str, time: str, *, bulk: bool, twice: int | None) -> Iterator[ProbeResult]:
    """How rows of a query are found. `twice`: see `equal_numbers`."""
    yield ProbeResult(True, f"the database takes the query, its rows are numbered by {ids}")
    if twice is not None:
        words = f"two rows of the query have the number {twice}: name a column as incrementing that tells rows apart"
        yield ProbeResult(False, words)
    if bulk:
        yield ProbeResult(True, EACH_RUN_READS_ALL)
    elif time:
        yield ProbeResult(True, f"rows that were changed are found by {time}")
    else:
        words = "a row that comes to be in the result after one with a higher number is not read"
        yield ProbeResult(True, words)
