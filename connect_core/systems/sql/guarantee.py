"""What the sink promises, and under which conditions."""

from __future__ import annotations

from connect_core.sdk.guarantee import Guarantee
from connect_core.sdk.values import Json
from connect_core.systems.database_urls import file_of
from connect_core.systems.tables.guarantee import rows_written

_LOCAL = "The file is on a local file system of the driver's host, whose disk keeps what it was told to"
_UNTESTED = (
    "The database keeps what it has committed, has transactions for the tables and for the markers, lets an UPDATE lock"
    " its row until the end of the transaction, and keeps values of the columns' types as they are. Waybill has tests"
    " with SQLite alone"
)
_UNALTERED = "Nobody alters the table while a run writes"


def sink_guarantee(options: Json) -> Guarantee:
    of_database = (_LOCAL,) if file_of(str(options.get("url"))) else (_UNTESTED, _UNALTERED)
    return rows_written(options, *of_database)
