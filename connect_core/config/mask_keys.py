"""Keys of masks that make tokens: references in documents, revealed for whoever runs their pipeline.

A document names a key by a reference, and says which it is by an id, which is no secret. So another key is another
document, and ranges that are open with the one before are finished with that one (delivery rule 8).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from connect_core.config.secret_keys import key_of, reference_faults
from connect_core.config.written import Place
from connect_core.errors import ConfigError
from connect_core.pipeline.key_ids import key_id_of
from connect_core.sdk.values import Json


def key_faults(transforms: list[Json]) -> Iterator[tuple[Place, str]]:
    """Of steps that are sound by themselves. A key that cannot be read here is judged where workers run."""
    for place, way in _tokens(transforms):
        yield from ((place, words) for words in reference_faults(way["token"], way.get("key_id")))


def with_keys(pipeline: Json) -> Json:
    """The pipeline with its keys: show nobody what it returns. Raises ConfigError for a key that cannot be read, or is
    another one than the document means."""
    transforms: list[Json] = pipeline.get("transforms", [])
    if not any(True for _ in _tokens(transforms)):
        return pipeline
    return pipeline | {"transforms": [_with_keys(step) for step in transforms]}


def _with_keys(step: Json) -> Json:
    if "mask" not in step:
        return step
    return {"mask": {path: _with_key(way) if _is_token(way) else way for path, way in step["mask"].items()}}


def _with_key(way: Json) -> Json:
    reference = way["token"]
    key = key_of(reference)
    if (found := key_id_of(key)) == way.get("key_id"):
        return way | {"token": key}
    raise ConfigError(
        f"The key of a mask has the id {found}, and the document means {way.get('key_id')}",
        where=reference,
        next_step="Put the key that is meant there again, or give the other key a name and an id of its own in the "
        "document: what is open is finished with the key that it was begun with",
    )


def _tokens(transforms: list[Json]) -> Iterator[tuple[Place, Json]]:
    for number, step in enumerate(transforms):
        for path, way in step.get("mask", {}).items():
            if _is_token(way):
                yield ("transforms", number, "mask", path), way


def _is_token(way: Any) -> bool:
    return isinstance(way, dict) and "token" in way
