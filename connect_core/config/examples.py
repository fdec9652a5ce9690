"""The examples of a document, beside what its pipeline makes of them. Those that do not hold are faults.

Looks for files, where lines of files are the records; opens none.
"""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from connect_core.config.document import ConnectorDocument
from connect_core.config.endpoints import End
from connect_core.config.example_models import Example, ExampleOutput, ExampleRecord, payload_bytes
from connect_core.config.mask_keys import with_keys
from connect_core.config.paths import absolute_path
from connect_core.config.references import is_reference, masked
from connect_core.config.ruling import pipeline_of
from connect_core.config.units import show_count
from connect_core.config.written import Place
from connect_core.errors import ConfigError
from connect_core.masking import mask_secrets
from connect_core.sdk.plugin import FilesRead, TypedRecord
from connect_core.sdk.templates import Kind
from connect_core.sdk.values import Json

if TYPE_CHECKING:
    from connect_core.pipeline.examples import Made

Unmet = tuple[Place, str]
"""A place of the document, and the words about it."""

_GIVES: Mapping[str, tuple[Kind, str]] = {
    "topic": ("topic", "topic"),
    "tags": ("tags", "tags"),
    "key": ("key", "key"),
    "headers": ("header", "headers"),
    "path": ("file", "path"),
}
"""What an example may give of a record if records of the source have it."""
_QUOTED_CHARACTERS = 200


def unmet_examples(document: ConnectorDocument, source: End, roots: tuple[Path, ...]) -> Iterator[Unmet]:
    """Of a document that is sound, as it would be stored, with its source."""
    if not document.examples:
        return
    from connect_core.pipeline.examples import SinglePipeline  # and Arrow, which most documents can be checked without

    try:
        pipeline = SinglePipeline(with_keys(pipeline_of(document)))
    except ConfigError as error:  # of a key that is not here
        yield ("examples",), f"need the key of a mask: {error}"
        return
    records = _Records(source, roots)
    for number, example in enumerate(document.examples):
        wrong = [(("record", *place), words) for place, words in records.impossible(example.record)]
        wrong = wrong or list(_unmet(example, pipeline.made_of(*records.typed(example.record))))
        named = f"example {example.name!r}: " if example.name else ""
        yield from ((("examples", number, *place), named + words) for place, words in wrong)


def with_absolute_paths(examples: Sequence[Json], roots: tuple[Path, ...]) -> list[Json]:
    """As they are stored: a relative path begins elsewhere for somebody with other roots. One that may not be stays."""
    return [{**one, "record": _with_absolute_path(one["record"], roots)} for one in examples]


def _with_absolute_path(record: Json, roots: tuple[Path, ...]) -> Json:
    try:
        return {**record, "path": absolute_path(record["path"], roots)} if record.get("path") else record
    except ValueError:
        return record


class _Records:
    """Those that a source makes."""

    def __init__(self, source: End, roots: tuple[Path, ...]) -> None:
        self._source, self._roots = source.configured(), roots
        self._kinds = self._source.plugin.source_fields

    def impossible(self, record: ExampleRecord) -> Iterator[Unmet]:
        """What an example gives of its record, and no record has."""
        for option, (kind, name) in _GIVES.items():
            if getattr(record, option) and kind not in self._kinds:
                yield (option,), f"records of {self._source.name} have no {name}: leave it out"
        if not self._are_lines:
            return
        if b"\n" in payload_bytes(record.payload):
            yield ("payload",), "holds a line feed, which no line does: of a block of text, |- leaves out the last one"
        if record.path is not None:
            try:
                path = absolute_path(record.path, self._roots)
            except ValueError as error:
                yield ("path",), str(error)
            else:
                if self._pattern and self._read and not self._read.reads((os.path.realpath(path),)):
                    yield ("path",), f"is no file that the source reads ({self._pattern})"

    def typed(self, record: ExampleRecord) -> tuple[TypedRecord, str | None]:
        """The record as the source makes it, and the path of its file."""
        headers = tuple(record.headers.items())
        written = TypedRecord(payload_bytes(record.payload), record.topic, record.tags, record.key, headers)
        return self._source.plugin.typed(written), self._path(record)

    def _path(self, record: ExampleRecord) -> str | None:
        if not self._are_lines:
            return None
        if record.path is not None or glob.has_magic(self._pattern):
            return record.path
        return self._pattern or None

    @property
    def _are_lines(self) -> bool:
        return "file" in self._kinds

    @cached_property
    def _read(self) -> FilesRead | None:
        return self._source.plugin.files_read(self._source.options)

    @property
    def _pattern(self) -> str:
        """Empty where it is not known yet."""
        pattern = str(self._source.options.get(self._read.option, "")) if self._read else ""
        return "" if is_reference(pattern) else pattern


def _unmet(example: Example, made: Made) -> Iterator[Unmet]:
    if example.filtered:
        if made.outputs or made.rejected:
            yield ("filtered",), f"expected to be filtered; the record {_said(made)}"
    elif example.rejected is not None:
        if not _is_rejected(made, example.rejected):
            why = f" ({example.rejected!r})" if example.rejected else ""
            yield ("rejected",), f"expected to be rejected{why}; the record {_said(made)}"
    elif len(made.outputs) != len(example.becomes):
        yield ("becomes",), f"expected {show_count(len(example.becomes), 'output')}; the record {_said(made)}"
    else:
        several = len(made.outputs) > 1
        for number, (wanted, output) in enumerate(zip(example.becomes, made.outputs, strict=True)):
            at: Place = ("becomes", number) if several else ("becomes",)
            yield from (((*at, *place), words) for place, words in _differences(wanted, output))


def _is_rejected(made: Made, reason: str) -> bool:
    reject = made.rejected
    return reject is not None and (reason == reject.stage or reason in reject.message)


def _said(made: Made) -> str:
    """What a record becomes instead, in words that follow "the record"."""
    if made.rejected:
        return f"is rejected, stage {made.rejected.stage}: {made.rejected.message}"
    if not made.outputs:
        return "is filtered"
    each = "; ".join(
        ", ".join(f"{name} {output[name]!r}" for name in ("to", "tags", "key") if output[name]) or "as it is"
        for output in made.outputs
    )
    return f"becomes {show_count(len(made.outputs), 'output')}: {_cut(each)}"


def _differences(wanted: ExampleOutput, output: Json) -> Iterator[Unmet]:
    """In what an output is not as it is given. What is empty is not there."""
    given = wanted.model_fields_set
    for name in ("to", "tags", "key"):
        if name in given and (getattr(wanted, name) or "") != (output[name] or ""):
            yield (name,), _instead(getattr(wanted, name), output[name])
    for name, value in wanted.headers.items():
        if (value or "") != output["headers"].get(name, ""):
            yield ("headers", name), _instead(value, output["headers"].get(name))
    if "payload" in given and (words := _another_payload(wanted.payload, output["payload"])):
        yield ("payload",), words


def _another_payload(wanted: Any, payload: bytes) -> str:
    """Empty when it is the same."""
    if isinstance(wanted, str):
        return "" if wanted.encode() == payload else _instead(wanted, _text(payload))
    try:
        found = json.loads(payload)
    except (ValueError, RecursionError):
        found = _text(payload)
    return "" if _is_same(wanted, found) else _instead(wanted, found)


def _is_same(left: Any, right: Any) -> bool:
    """As JSON: for Python 1 is true."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_is_same(value, right[key]) for key, value in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_is_same, left, right))
    return bool(isinstance(left, bool) == isinstance(right, bool) and left == right)


def _instead(wanted: Any, found: Any) -> str:
    return f"expected {_shown(wanted)}; the output has {_shown(found)}"


def _shown(value: Any) -> str:
    if value in (None, ""):
        return "none"
    return _cut(repr(value) if isinstance(value, str) else json.dumps(masked(value), ensure_ascii=False))


def _cut(text: str) -> str:
    """Masked before it is cut, for a part is not recognised."""
    text = mask_secrets(text)
    return text if len(text) <= _QUOTED_CHARACTERS else f"{text[:_QUOTED_CHARACTERS]}…"


def _text(payload: bytes) -> str:
    return payload.decode(errors="replace")
