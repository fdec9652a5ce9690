"""What a document does with changes of rows, where its payloads are some: a delete must not look like any other record,
and nothing may happen to a row alone whose former image is delivered beside it. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator

from connect_core.config.document import ConnectorDocument
from connect_core.config.written import Place
from connect_core.pipeline.formats.known import read_format, written_format
from connect_core.pipeline.references import names_in, read_condition
from connect_core.pipeline.transforms.steps import step_of
from connect_core.sdk.templates import Reference, template

_HOW = (
    "leave deletes out (filter: change:operation != 'delete'), say what they are (set: {op: '{change:operation}'}), or"
    " write format debezium"
)


def unfit_changes(document: ConnectorDocument) -> Iterator[tuple[Place, str]]:
    """Place and words. Of a document whose steps are sound."""
    if not document.reshapes or not read_format({"format": document.parse.format}).reads_changes:
        return
    form = document.encode.format
    if not written_format({"format": form}).writes_changes:
        if not any(name.kind == "change" for name in _names(document)):
            yield (
                ("encode", "format"),
                f"{'json' if form == 'none' else form} does not say that a row was deleted: {_HOW}",
            )
        return
    for number, written in enumerate(document.transforms):
        if step_of(written).on_images == "cannot":
            words = (
                f"{next(iter(written))}: works on rows as they are alone, and events have them as they were before, too"
            )
            yield ("transforms", number), words


def _names(document: ConnectorDocument) -> Iterator[Reference]:
    conditions = [document.filter.when, *(rule.when for rule in document.rules if rule.enabled)]
    for when in filter(None, conditions):
        yield from names_in(read_condition(when)).values()
    for written in document.transforms:
        yield from step_of(written).references().values()
    for rule in document.rules:
        for text in (rule.to, rule.tags, rule.keys):
            yield from (name for place in template(text or "").places() for name in place.names)
