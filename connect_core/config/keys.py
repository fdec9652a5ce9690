"""What a document does with keys that have a format: whether its records have keys, and whether two parts of it set the
same one. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from connect_core.config.document import ConnectorDocument
from connect_core.config.endpoints import End
from connect_core.config.written import Place
from connect_core.pipeline.formats.key_format import PLAIN_KEY


def unfit_keys(document: ConnectorDocument, source: End) -> Iterator[tuple[Place, str]]:
    """Place and words. Of a document whose steps are sound, and its source."""
    if document.parse.key_format != PLAIN_KEY and "key" not in source.configured().plugin.source_fields:
        yield ("parse", "key_format"), f"records of {source.system} have no key: leave it out"
    if not document.encode.writes_keys:
        return
    for number, step in enumerate(document.transforms):
        if "key" in step.get("record", ()):
            yield (
                ("transforms", number),
                "record: sets the key, and encode.key_format replaces it: leave one of them out",
            )
    for number, rule in enumerate(document.rules):
        if rule.enabled and rule.keys is not None:
            words = "replaces the key that encode.key_format makes: leave one of them out"
            yield ("rules", number, "keys"), f"rule {rule.name} {words}"
