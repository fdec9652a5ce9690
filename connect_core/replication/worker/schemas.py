"""Who knows the schemas that records were written with, where a document names a Schema Registry.

What has a number in a registry never changes there, so each is asked for once in a process. A number that it does not
know rejects its record; a registry that is away fails the run.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable
from functools import cache

from connect_core.config.references import reveal
from connect_core.pipeline.formats.payload_format import Lookup
from connect_core.registry.client import Registered, SchemaRegistry
from connect_core.registry.opening import opened
from connect_core.rows.avro_schemas import read_schema
from connect_core.rows.envelope_schemas import Misfit
from connect_core.rows.protobuf_schemas import set_of
from connect_core.sdk.values import Json

_MOST_FILES = 100
"""That one schema may need."""


def lookup_of(pipeline: Json) -> Lookup | None:
    parse = pipeline.get("parse", {})
    registry = parse.get("registry")
    return None if registry is None else _lookup(json.dumps(reveal(registry), sort_keys=True), parse["format"])


@cache
def _lookup(settings: str, form: str) -> Lookup:
    registry, read = opened(json.loads(settings)), _READ[form]
    known: dict[int, object] = {}

    def lookup(number: int) -> object:
        if number not in known:
            known[number] = read(registry, number)
        return known[number]

    return lookup


def _avro(registry: SchemaRegistry, number: int) -> object:
    found = _found(registry, number, "AVRO", "Avro")
    if found.references:
        raise Misfit("it names schemas of other subjects, which are not read here")
    return read_schema(found.text)


def _protobuf(registry: SchemaRegistry, number: int) -> object:
    """A FileDescriptorSet whose last file is that of the schema."""
    _found(registry, number, "PROTOBUF", "Protobuf")
    files: dict[str, bytes] = {}
    _add(registry, number, f"schema {number}", files, set())
    return set_of(files.items())


def _add(registry: SchemaRegistry, number: int, name: str, files: dict[str, bytes], asked: set[str]) -> None:
    """A file behind those that it imports."""
    asked.add(name)
    if len(asked) > _MOST_FILES:
        raise Misfit(f"it needs more than {_MOST_FILES} files")
    found = registry.schema(number, serialized=True)
    for one in found.references if found else ():
        if one.name not in asked:
            needed = registry.version(one.subject, one.version)
            if needed is None:
                raise Misfit("it names a schema of another subject that is not there")
            _add(registry, needed, one.name, files, asked)
    try:
        files[name] = b64decode(found.text if found else "", validate=True)
    except ValueError:
        raise Misfit("the registry does not give it as a FileDescriptorProto (format=serialized)") from None


def _found(registry: SchemaRegistry, number: int, kind: str, word: str) -> Registered:
    found = registry.schema(number)
    if found is None:
        raise Misfit("the registry has none of that number")
    if found.kind != kind:
        raise Misfit(f"the registry has no schema of {word} under that number")
    return found


_READ: dict[str, Callable[[SchemaRegistry, int], object]] = {"avro": _avro, "protobuf": _protobuf}
"""By the format of a document what it makes of a schema."""
