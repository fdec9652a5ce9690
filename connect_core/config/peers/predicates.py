"""Predicates of Kafka Connect: whether one holds for all records, for none, or under which condition. Pure."""

from __future__ import annotations

import re

from connect_core.config.peers.patterns import java_pattern
from connect_core.config.peers.reading import PeerPart
from connect_core.config.peers.state import Chain

PACKAGE = "org.apache.kafka.connect.transforms.predicates."
_HEADER = re.compile(r"[\w.$-]+")
KNOWN = ("TopicNameMatches", "HasHeaderKey", "RecordIsTombstone")


def condition_of(part: PeerPart, chain: Chain) -> bool | str:
    """True or False where it is the same for all records; else a condition as documents have it."""
    predicate = part.predicate
    if predicate is None:
        return True
    name = predicate.cls.removeprefix(PACKAGE)
    if name == "TopicNameMatches":
        found = _topics(predicate, chain)
    elif name == "HasHeaderKey":
        found = _header(predicate)
    elif name == "RecordIsTombstone":
        found = False  # a line, a publish and a message always have a value, though it may be empty
    else:
        raise predicate.refuse(f"there is no predicate {predicate.cls!r} here; there are {', '.join(KNOWN)}")
    if not part.negate:
        return found
    return f"NOT ({found})" if isinstance(found, str) else not found


def _topics(predicate: PeerPart, chain: Chain) -> bool | str:
    if chain.topics is None:
        raise predicate.refuse("the topic depends on the time of a record by then: put this before TimestampRouter")
    text = predicate.need("pattern")
    try:
        pattern = java_pattern(text)
    except ValueError as why:
        raise predicate.refuse(str(why), "pattern") from None
    matching = [topic for topic, seen in chain.topics.items() if pattern.fullmatch(seen)]
    if len(matching) in (0, len(chain.topics)):
        return bool(matching)
    return f"topic IN ({', '.join(map(_quoted, matching))})"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _header(predicate: PeerPart) -> str:
    name = predicate.need("name")
    if not _HEADER.fullmatch(name):
        raise predicate.refuse(f"{name!r} holds what a condition cannot name", "name")
    return f"header:{name} IS NOT NULL"
