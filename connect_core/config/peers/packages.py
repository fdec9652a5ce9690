"""Transforms of packages that people install into Kafka Connect: those of Confluent and of Aiven. Pure.

https://docs.confluent.io/kafka-connectors/transforms/current/overview.html
https://github.com/Aiven-Open/transforms-for-apache-kafka-connect
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from connect_core.config.peers.reading import PeerPart
from connect_core.config.peers.state import Chain, path

_OF_AIVEN = ("drop_silent", "drop_warn", "fail")
CONFLUENT, AIVEN = "io.confluent.connect.transforms.", "io.aiven.kafka.connect.transforms."


def _tombstones(part: PeerPart, chain: Chain) -> None:
    part.one_of("behavior", *(("warn", "ignore", "fail") if part.cls.startswith(CONFLUENT) else _OF_AIVEN))
    chain.notice(part, "accepted without effect: nothing here is a tombstone")


def _drop_key(part: PeerPart, chain: Chain) -> None:
    part.get("schema.behavior")
    chain.add(part, {"record": {"key": ""}})
    chain.key = chain.single_key = None


def _hash(part: PeerPart, chain: Chain) -> None:
    name, function = part.need("field.name"), part.need("function").lower()
    if chain.field(part, name, "field.name").kind != "text":
        raise part.refuse(f"{name} is no text, and only a text is hashed", "field.name")
    if function != "sha256":
        raise part.refuse(f"{function!r} is not kept, only sha256", "function")
    if part.get("skip.missing.or.null", "false").lower() != "true":
        raise part.refuse("a value that is missing stays missing here: write true", "skip.missing.or.null")
    chain.add(part, {"mask": {path(name): "hash"}})


CLASSES: Mapping[str, Callable[[PeerPart, Chain], None]] = {
    f"{CONFLUENT}TombstoneHandler": _tombstones,
    f"{CONFLUENT}Drop$Key": _drop_key,
    f"{AIVEN}TombstoneHandler": _tombstones,
    f"{AIVEN}Hash$Value": _hash,
}
"""By their whole names."""
