"""What a document does with changes of rows, where its payloads are some: a delete must not look like any other record,
and nothing may happen to a row alone whose former image is delivered beside it. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator

from connect_core.config.document import ConnectorDocument
from connect_core.config.endpoints import End
from connect_core.config.written import Place
from connect_core.pipeline.formats.known import read_format, written_format
from connect_core.pipeline.references import names_in, read_condition
from connect_core.pipeline.transforms.steps import step_of
from connect_core.sdk.templates import Reference, template

_HOW = (
    "leave deletes out (filter: change:operation <> 'delete'), or say what they are (set: {op: '{change:operation}'})"
)


def unfit_changes(document: ConnectorDocument, sink: End) -> Iterator[tuple[Place, str]]:
    """Place and words. Of a document whose steps are sound, and its sink."""
    if not read_format({"format": document.parse.format}).reads_changes:
        return
    end, form = sink.configured(), document.encode.format
    if end.plugin.takes_rows:
        if not end.plugin.follows_changes(end.options) and not _tells_deletes(document):
            yield ("sink", sink.system, "mode"), f"with insert a deleted row is one more row: write upsert, or {_HOW}"
    elif document.reshapes and written_format({"format": form}).writes_changes:
        yield from _unfit_steps(document)
    elif document.reshapes and not _tells_deletes(document):
        words = f"{'json' if form == 'none' else form} does not say that a row was deleted"
        yield ("encode", "format"), f"{words}: {_HOW}, or write format debezium"


def _unfit_steps(document: ConnectorDocument) -> Iterator[tuple[Place, str]]:
    for number, written in enumerate(document.transforms):
        if step_of(written).on_images == "cannot":
            words = "works on rows as they are alone, and events have them as they were before, too"
            yield ("transforms", number), f"{next(iter(written))}: {words}"


def _tells_deletes(document: ConnectorDocument) -> bool:
    """Whether it names what happened to a row anywhere."""
    return any(name.kind == "change" and not name.name for name in _names(document))


def _names(document: ConnectorDocument) -> Iterator[Reference]:
    conditions = [document.filter.when, *(rule.when for rule in document.rules if rule.enabled)]
    for when in filter(None, conditions):
        yield from names_in(read_condition(when)).values()
    for written in document.transforms:
        yield from step_of(written).references().values()
    for rule in document.rules:
        for text in (rule.to, rule.tags, rule.keys):
            yield from (name for place in template(text or "").places() for name in place.names)
