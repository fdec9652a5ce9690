"""Who knows the schemas that records were written with, where a document names a Schema Registry.

What has a number in a registry never changes there, so each is asked for once in a process. A number that it does not
know rejects its record; a registry that is away fails the run.
"""

from __future__ import annotations

import json
from functools import cache

from connect_core.config.references import reveal
from connect_core.pipeline.formats.payload_format import Lookup
from connect_core.registry.opening import opened
from connect_core.rows.avro_schemas import read_schema
from connect_core.rows.envelope_schemas import Misfit
from connect_core.sdk.values import Json


def lookup_of(pipeline: Json) -> Lookup | None:
    registry = pipeline.get("parse", {}).get("registry")
    return None if registry is None else _lookup(json.dumps(reveal(registry), sort_keys=True))


@cache
def _lookup(settings: str) -> Lookup:
    registry = opened(json.loads(settings))
    known: dict[int, object] = {}

    def lookup(number: int) -> object:
        if number not in known:
            found = registry.schema(number)
            if found is None:
                raise Misfit("the registry has none of that number")
            if found.kind != "AVRO":
                raise Misfit("the registry has no schema of Avro under that number")
            if found.refers:
                raise Misfit("it names schemas of other subjects, which are not read here")
            known[number] = read_schema(found.text)
        return known[number]

    return lookup
