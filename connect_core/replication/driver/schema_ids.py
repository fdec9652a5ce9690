"""The number of the schema that a document writes with: asked of its Schema Registry when it is applied, and stored in
it.

So a run asks nobody, and what a range writes is the same whenever it is tried again (delivery rule 8).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from connect_core.config import Checked, ConnectorDocument
from connect_core.config.references import reveal
from connect_core.config.row_types import WantedNumber, registered_schema
from connect_core.errors import ConfigError
from connect_core.registry.client import SchemaRegistry
from connect_core.registry.opening import opened


def with_schema_ids(checked: Sequence[Checked], *, register: bool) -> list[Checked]:
    """The documents with their numbers. Without `register` nothing is changed in a registry, and a schema that `apply`
    would register has no number yet. Raises what a registry fails with, and ConfigError for a schema that is not
    there and may not be registered, or that it does not take."""
    return [_with_schema_id(item, register=register) for item in checked]


def _with_schema_id(item: Checked, *, register: bool) -> Checked:
    said, wanted = item.document.encode.registry, registered_schema(item.document)
    if said is None or wanted is None:
        return item
    subject = wanted.subject
    registry = opened(reveal(said.model_dump(exclude_defaults=True)))
    number = registry.number_of(*wanted)
    if number is None and not said.auto_register:
        raise _unregistered(registry, subject, item.where)
    if number is None and not register:
        _check_compatible(registry, wanted)
        words = f"encode.registry: apply registers the schema under {subject}"
        return replace(item, notices=(*item.notices, words))
    number = registry.register(*wanted) if number is None else number
    data = item.data | {"encode": item.data["encode"] | {"schema_id": number}}
    return replace(item, data=data, document=ConnectorDocument.model_validate(data))


def _unregistered(registry: SchemaRegistry, subject: str, where: str) -> ConfigError:
    newest = registry.latest(subject)
    there = f"its newest schema has the number {newest}" if newest is not None else "there is no such subject"
    step = "Register it, or have apply do it: encode.registry.auto_register: true; or write the schema that is there"
    return ConfigError(f"The schema is not registered under {subject}: {there}", where=where, next_step=step)


def _check_compatible(registry: SchemaRegistry, wanted: WantedNumber) -> None:
    if not registry.is_compatible(*wanted):
        step = "Change the schema, or the subject's compatibility, or write to another subject"
        words = f"The schema is not compatible with the newest of {wanted.subject}"
        raise ConfigError(words, where=registry.where, next_step=step)
