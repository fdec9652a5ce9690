"""The fields of the newest records of a source. Reads only."""

from __future__ import annotations

from pathlib import Path

from connect_core.config import ConnectorDocument, Settings, resolve
from connect_core.config.row_types import suggested_fields
from connect_core.errors import ConfigError
from connect_core.replication.driver.dry_run import outputs_of
from connect_core.sdk.values import Json
from connect_core.service.newest_records import newest

SAMPLE = 1_000
"""Records that are looked at."""

_SUGGESTED = "`waybill fields FILE` suggests them from a file with such records"


def sampled(document: ConnectorDocument, home: Path | None, settings: Settings) -> Json:
    """As `suggested_fields` has them, of the records that the filter lets pass. Its `when` is asked behind `parse`: it
    may name fields. Raises ConfigError where there are none, and what the source fails with."""
    records, path = newest(
        resolve(document, home, settings, "").source, SAMPLE, instead=f"Write the fields: {_SUGGESTED}"
    )
    wanted = document.filter.model_dump(exclude_defaults=True, exclude={"when"})
    rows, _ = outputs_of({"transforms": [], "filter": wanted}, records, path)
    payloads = [row["value"] or b"" for _, row in rows]
    if not payloads:
        many = f"The filter lets none of the newest {len(records):,} records pass"
        why = many if len(records) else "The source has no record"
        raise ConfigError(why, next_step=f"Apply the document when there are some, or write the fields: {_SUGGESTED}")
    told = suggested_fields(payloads)
    if told is None:
        raise ConfigError(
            f"None of the newest {len(payloads):,} records is a JSON object with fields",
            next_step="Correct parse.format, or leave parse out: payloads pass as they are",
        )
    return told
