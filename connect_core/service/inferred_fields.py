"""Fields of documents that say `fields: infer`: found in the newest records of the source when a document is applied,
and kept from then on. A document that is applied again has those that are stored; only a person has them found again.
Fields that runs have evolved are kept as well.

Reads only: whoever applies the document stores them in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from connect_core.config import Checked, ExaminedBefore, Settings, StreamBeside, WrittenDocuments, check_together
from connect_core.config.evolved_fields import kept_fields, told
from connect_core.config.inferred_fields import described, stored_fields
from connect_core.errors import ConfigError, Fault
from connect_core.sdk.values import Json


def checked_together(
    written: WrittenDocuments,
    home: Path | None,
    settings: Settings,
    standing: Mapping[str, Json],
    *,
    stored: Mapping[str, Json] | None = None,
    looks: bool = True,
    again: bool = False,
    beside: Sequence[StreamBeside] = (),
    before: ExaminedBefore | None = None,
) -> list[Checked]:
    """As `check_together`, with the fields of those that infer them: those in the `stored` document of their name, by
    default of `standing`; where there are none, or `again`, what the newest records of the source have. Unless it
    `looks`, no source is asked and those without stored fields stay without. Others have what runs have evolved beside
    their own. Raises ConfigError with all that cannot be found, and what a source fails with."""
    before = before or ExaminedBefore()
    first = check_together(written, home, settings, standing, beside=beside, before=before)
    if again and not any(item.document.parse.infers for item in first):
        step = "Write parse: {format: json, fields: infer} where fields shall be found in the source"
        raise ConfigError("No document infers its fields", next_step=step)
    found, notices, faults = dict[str, Json](), dict[str, Sequence[str]](), list[Fault]()
    for item in first:
        name = item.document.name
        former = (standing if stored is None else stored).get(name, {})
        if not item.document.parse.infers:
            if of_runs := kept_fields(item.data, former):
                found[name], notices[name] = of_runs, [_kept_of_runs(of_runs)]
            continue
        kept = stored_fields(former)
        try:
            found[name], notices[name] = _fields(item, kept, home, settings, looks=looks, again=again)
        except ConfigError as error:
            faults.append(Fault(f"{item.where}: parse.fields", _words(error)))
    if faults:
        raise ConfigError("Fields cannot be inferred", faults=tuple(faults))
    second = first
    if any(found.values()):
        second = check_together(written, home, settings, standing, found, beside, before)
    return [replace(one, notices=(*one.notices, *notices.get(one.document.name, ()))) for one in second]


def _kept_of_runs(kept: Json) -> str:
    words = f"parse.fields: runs have added or widened {told(kept['evolved'])}, and these are kept"
    return f"{words}; write them in the document to have them declared, or unknown: reject to be without them"


def _words(error: ConfigError) -> str:
    return ". ".join(filter(None, [error.what, *map(str, error.faults), error.next_step]))


def _fields(
    item: Checked, kept: Json | None, home: Path | None, settings: Settings, *, looks: bool, again: bool
) -> tuple[Json, Sequence[str]]:
    """What stands for `infer`, and what a person should know of it."""
    if kept and not again:
        return kept, [
            f"parse.fields: {described(kept['inferred'])}, and kept; `waybill apply --infer-again` looks again"
        ]
    if not looks:
        return {}, ["parse.fields: `apply` finds them in the source, and checks then what names them"]
    from connect_core.service.field_samples import sampled  # loads Arrow

    told = sampled(item.document, home, settings)
    remarks = [f"parse.fields: {remark}" for remark in told["remarks"]]
    if kept and told["fields"] == kept["fields"] and "evolved" not in kept:
        return kept, ["parse.fields: the same as before", *remarks]
    inferred = {"at": _now(), "records": told["records"]} | ({"others": told["unread"]} if told["unread"] else {})
    return {"fields": told["fields"], "inferred": inferred}, [f"parse.fields: {described(inferred)}", *remarks]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
