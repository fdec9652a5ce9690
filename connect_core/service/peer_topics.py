"""What workers of RocketMQ Connect keep in topics: the records of configurations and of source positions. Pure.

The key of a record is Base64 in `KEYS`, its value JSON with an envelope: `{"schema": …, "payload": …}`. Which of
several counts is decided as a worker does it: a configuration by its `epoch`, the time when it was sent; a position by
its place in the topic. Sources: `AbstractConfigManagementService`, `AbstractPositionManagementService` and
`BrokerBasedLog` of apache/rocketmq-connect, commit 85da68c.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from connect_core.sdk.whole_topic import TopicRecord, WholeTopic
from connect_core.service.stored_connectors import StoredConnector

_CONNECTOR, _STATE, _DELETED = "connector-", "target-state-", "delete-"
_OF_OTHERS = ("task-", "start-signal")
"""Records that say nothing of a connector: each worker makes the tasks itself."""
_STATES = {"STARTED": "running", "PAUSED": "paused"}
_POSITION, _ONLINE = "POSITION_CHANG", "ONLINE"
_BROKEN = "this is not what RocketMQ Connect has written"


@dataclass
class Kept:
    """`lacking` says in words what could not be read, and of whom, where that is known."""

    connectors: dict[str, StoredConnector] = field(default_factory=dict)
    lacking: list[str] = field(default_factory=list)


class PeerPosition(NamedTuple):
    """Where the source of the connector `name` goes on; `offset` is None where that cannot be read, at `where`."""

    name: str
    partition: Mapping[str, Any]
    offset: Mapping[str, Any] | None
    where: str


class _Change(NamedTuple):
    """`epoch` is None where the record says none: it counts by its place in the topic."""

    epoch: int | None
    name: str
    apply: Callable[[Kept, str], None]


def configurations(topic: WholeTopic) -> Kept:
    """The connectors that there are. One whose newest record is broken has that as its problem."""
    kept = Kept(lacking=list(topic.lacking))
    changes: list[_Change] = []
    newest: dict[str, int] = {}
    for record in topic.records:
        if change := _change(record, kept):
            epoch = newest.get(change.name, 0) if change.epoch is None else change.epoch
            newest[change.name] = max(epoch, newest.get(change.name, 0))
            changes.append(change._replace(epoch=epoch))
    for change in sorted(changes, key=lambda one: one.epoch or 0):
        change.apply(kept, change.name)
    return kept


def _change(record: TopicRecord, kept: Kept) -> _Change | None:
    key = _text_of(record.key)
    if key is None:
        kept.lacking.append(f"{record.where}: its key cannot be read, {_BROKEN}")
        return None
    for prefix, read in ((_CONNECTOR, _configured), (_STATE, _wished), (_DELETED, _gone)):
        if key.startswith(prefix):
            return _read(record, key.removeprefix(prefix), read)
    if not key.startswith(_OF_OTHERS):
        kept.lacking.append(f"{record.where}: the key {key[:80]!r} is not known, {_BROKEN}")
    return None


def _read(
    record: TopicRecord, name: str, read: Callable[[Mapping[str, Any]], Callable[[Kept, str], None]]
) -> _Change | None:
    if record.value == b"":
        return _Change(None, name, _delete)
    try:
        payload = _payload(record.value)
        return _Change(_number(payload["epoch"]), name, read(payload))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return _Change(None, name, _broken(record))


def _configured(payload: Mapping[str, Any]) -> Callable[[Kept, str], None]:
    given = {str(key): "null" if value is None else str(value) for key, value in payload["properties"].items()}
    state = _STATES[payload["state"]]

    def apply(kept: Kept, name: str) -> None:
        kept.connectors[name] = StoredConnector(name, given, "paused" if state == "paused" else "running")

    return apply


def _wished(payload: Mapping[str, Any]) -> Callable[[Kept, str], None]:
    if payload.get("deleted") is True:
        return _delete
    state = _STATES[payload["state"]]

    def apply(kept: Kept, name: str) -> None:
        if name in kept.connectors:
            kept.connectors[name] = replace(kept.connectors[name], state="paused" if state == "paused" else "running")
        else:
            kept.lacking.append(f"the configuration of {name}, which is {state} there: its record is gone")

    return apply


def _gone(payload: Mapping[str, Any]) -> Callable[[Kept, str], None]:
    return _delete


def _delete(kept: Kept, name: str) -> None:
    kept.connectors.pop(name, None)


def _broken(record: TopicRecord) -> Callable[[Kept, str], None]:
    def apply(kept: Kept, name: str) -> None:
        before = kept.connectors.get(name) or StoredConnector(name, {})
        kept.connectors[name] = replace(before, problems=[f"{record.where}: {_BROKEN}"])

    return apply


def positions(topic: WholeTopic) -> tuple[list[PeerPosition], list[str]]:
    """The newest of each partition, and what is lacking."""
    newest: dict[str, PeerPosition] = {}
    lacking = list(topic.lacking)
    for record in topic.records:
        try:
            kind, name, partition = _payload(b64decode(record.key, validate=True), list)
            if kind == _ONLINE:
                continue
            if kind != _POSITION or not isinstance(name, str) or not isinstance(partition, dict):
                raise ValueError
        except (ValueError, TypeError, RecursionError):
            lacking.append(f"{record.where}: the position of which connector it is cannot be read, {_BROKEN}")
            continue
        at = json.dumps([name, partition], sort_keys=True)
        newest[at] = PeerPosition(name, partition, _offset(record), record.where)
    return [one for one in newest.values() if one.offset is None or one.offset], lacking


def _offset(record: TopicRecord) -> Mapping[str, Any] | None:
    """Empty where the position was taken away; None where it cannot be read."""
    if record.value == b"":
        return {}
    try:
        return dict(_payload(record.value))
    except (ValueError, TypeError, RecursionError):
        return None


def with_positions(found: Mapping[str, StoredConnector], there: Iterable[PeerPosition]) -> list[StoredConnector]:
    """By name. A source that would begin anew for a position that cannot be read has that as its problem."""
    known = {
        name: replace(one, positions=list(one.positions), problems=list(one.problems)) for name, one in found.items()
    }
    for one in there:
        if (owner := known.get(one.name)) is None:
            continue
        if one.offset is None:
            owner.problems.append(f"{one.where}: its position cannot be read, {_BROKEN}")
        else:
            owner.positions.append((one.partition, one.offset))
    return [known[name] for name in sorted(known)]


def _payload(value: bytes | None, kind: type = dict) -> Any:
    """Raises ValueError for anything else than an envelope with that."""
    envelope = json.loads(value or b"")
    payload = envelope["payload"] if isinstance(envelope, dict) and "payload" in envelope else None
    if not isinstance(payload, kind):
        raise ValueError
    return payload


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError
    return value


def _text_of(key: str) -> str | None:
    """None for what is no Base64 of a text."""
    try:
        return b64decode(key, validate=True).decode() or None
    except ValueError:
        return None
