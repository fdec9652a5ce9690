"""Connectors as Kafka Connect tells them: bodies of its REST API, from a server or from files.

A file holds what `GET /connectors?expand=info&expand=status` answers, or one connector as it is sent to be created,
`{"name": …, "config": {…}}`, or several of these in a list; `NAME.offsets.json` what `GET /connectors/NAME/offsets`
answers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from connect_core.config.flat import CLASS
from connect_core.errors import ConfigError, Fault
from connect_core.service.connectors import Wish
from connect_core.service.kafka_server import KafkaServer
from connect_core.service.stored_connectors import StoredConnector

_STATES: Mapping[str, Wish] = {"RUNNING": "running", "PAUSED": "paused", "STOPPED": "stopped"}
_OFFSETS = ".offsets.json"
_BROKEN = "this is not what Kafka Connect answers"


def connectors_at(server: KafkaServer) -> list[StoredConnector]:
    """All that it has, by name."""
    try:
        found = sorted(_connectors(server.connectors()), key=lambda one: one.name)
        for one in found:
            if one.state == "running":
                one.notes.append("it runs there: pause or stop it before, or what it sends meanwhile comes again")
        return [_with_offsets(one, server.offsets(one.name)) for one in found]
    except ValueError:
        raise ConfigError("This is no answer of Kafka Connect") from None


def connectors_in(place: Path) -> list[StoredConnector]:
    """Of a file, or of all files of a folder that end in `.json`, by name. Raises ConfigError with every one that is
    broken, and where there is none."""
    files = sorted(place.glob("*.json")) if place.is_dir() else [place]
    found: dict[str, StoredConnector] = {}
    faults: list[Fault] = []
    for file in sorted(files, key=lambda one: one.name.endswith(_OFFSETS)):
        try:
            _add(file.name, json.loads(file.read_text(encoding="utf-8")), found)
        except OSError as error:
            faults.append(Fault(file.name, f"it cannot be read: {error.strerror}"))
        except OutOfPlace as error:
            faults.append(Fault(file.name, str(error)))
        except (ValueError, RecursionError):
            faults.append(Fault(file.name, _BROKEN))
    if faults:
        raise ConfigError("Nothing was taken over", where=str(place), faults=tuple(faults))
    if not found:
        raise ConfigError("There are no connectors in it", where=str(place), next_step="Files have to end in .json")
    return [found[name] for name in sorted(found)]


class OutOfPlace(Exception):
    """What is wrong with a file beside the others, in words."""


def _add(name: str, body: Any, found: dict[str, StoredConnector]) -> None:
    """Raises OutOfPlace, and ValueError for what is none of these."""
    if name.endswith(_OFFSETS):
        owner = found.get(name.removesuffix(_OFFSETS))
        if owner is None:
            raise OutOfPlace(f"there is no connector {name.removesuffix(_OFFSETS)}")
        _with_offsets(owner, body)
        return
    for one in _connectors(body):
        if one.name in found:
            raise OutOfPlace(f"{one.name} is in another file as well")
        found[one.name] = one


def _connectors(body: Any) -> list[StoredConnector]:
    """Raises ValueError for anything else."""
    try:
        return list(_told(body))
    except (TypeError, KeyError, AttributeError, RecursionError):
        raise ValueError from None


def _told(body: Any) -> Iterator[StoredConnector]:
    if isinstance(body, list):
        for one in body:
            yield from _told(one)
    elif not isinstance(body, dict):
        raise ValueError
    elif isinstance(body.get("config"), dict):
        yield _connector(str(body["name"] if "name" in body else body["config"]["name"]), body["config"], body)
    else:
        for name, one in body.items():
            if not isinstance(one, dict) or not isinstance(one.get("info"), dict):
                raise ValueError
            yield _connector(str(name), one["info"]["config"], one)


def _connector(name: str, config: Any, told: Mapping[str, Any]) -> StoredConnector:
    """`told` is what stands around the configuration."""
    if not isinstance(config, dict):
        raise ValueError
    texts = {str(key): str(value) for key, value in config.items() if value is not None}
    status = told.get("status")
    state = status["connector"]["state"] if isinstance(status, dict) else told.get("initial_state", "RUNNING")
    notes = [] if state in _STATES else [f"it is {state} there, and begins as one that runs"]
    problems = (
        [] if CLASS in texts else [f"it has no {CLASS}: a native document of Waybill is taken with `waybill apply`"]
    )
    return StoredConnector(name, texts, _STATES.get(state, "running"), notes=notes, problems=problems)


def _with_offsets(one: StoredConnector, told: Any) -> StoredConnector:
    if told is None:
        one.problems.append("its offsets are not known: this Kafka Connect does not tell them (3.5 and later do)")
        return one
    topics: set[str] = set()
    for partition, offset in _entries(told):
        if "kafka_topic" in partition:
            topics.add(str(partition["kafka_topic"]))
        elif partition.keys() == {"partition"} and offset.keys() == {"offset"}:
            one.offsets[str(partition["partition"])] = _whole(offset["offset"])
        else:
            one.positions.append((partition, offset))
    if topics:
        named = ", ".join(sorted(topics))
        one.notes.append(
            f"its offsets are not taken over: they are of topics of Kafka ({named}), and count nothing in topics of "
            "RocketMQ. What it had not read there has to come into RocketMQ by its source"
        )
    return one


def _entries(told: Any) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Raises ValueError for anything else. One that was reset has no offset any more."""
    entries = told.get("offsets") if isinstance(told, dict) else None
    if not isinstance(entries, list):
        raise ValueError
    for one in entries:
        partition, offset = (one.get("partition"), one.get("offset")) if isinstance(one, dict) else (None, None)
        if not isinstance(partition, dict) or not isinstance(offset, dict | None):
            raise ValueError
        if offset:
            yield partition, offset


def _whole(number: object) -> int:
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        raise ValueError
    return number
