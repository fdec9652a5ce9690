"""The step `sql`: one SELECT over the records of a batch, each for itself. Light: DuckDB is loaded with a statement.

transforms:
  - sql: SELECT *, CAST(price * 100 AS BIGINT) AS cents FROM records WHERE state = 'paid'
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from connect_core.pipeline.transforms.row_step import RowStep
from connect_core.rows.types import Type
from connect_core.sdk.templates import Reference


@dataclass(frozen=True)
class SqlRows(RowStep):
    on_images = "cannot"
    text: str

    def after(self, rows: Type) -> Type:
        from connect_core.pipeline.transforms.sql_planning import plan

        return plan(self.text, rows).rows

    def references(self) -> Mapping[str, Reference]:
        return _references(self.text)


@lru_cache(maxsize=256)
def _references(text: str) -> Mapping[str, Reference]:
    from connect_core.pipeline.transforms import sql_parsing

    return sql_parsing.references(sql_parsing.parsed(text))


def sql_step(of: object) -> SqlRows:
    """Raises ValueError for what is no statement, or one that is not allowed."""
    from connect_core.pipeline.transforms.sql_parsing import TABLE, parsed

    if not isinstance(of, str) or not of.strip():
        raise ValueError(f"needs a statement, as SELECT id, upper(name) AS name FROM {TABLE} WHERE id > 0")
    parsed(of)
    return SqlRows(of)
