"""What a worker of RocketMQ Connect keeps in its folder, `storePathRootDir`: configurations and source positions.

Each file is one JSON object of Base64 to Base64, with the content before the last change in `.bak`. Sources:
`FileBaseKeyValueStore`, `ConnectKeyValue` and `RecordPartitionSerde` of apache/rocketmq-connect, commit 85da68c.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from connect_core.errors import ConfigError
from connect_core.service.peer_topics import PeerPosition
from connect_core.service.stored_connectors import StoredConnector

_CONNECTORS, _POSITIONS = "connectorConfig.json", "position.json"
_PAUSED = "PAUSED"
_SHOWN = 80
"""Characters of a key in an error."""


def configurations_in(folder: Path) -> dict[str, StoredConnector]:
    """By name. Raises ConfigError when there are none, or a file is not what it should be."""
    place = _place(folder)
    found = dict(_connectors(place))
    if not found:
        step = "Name the folder that is storePathRootDir there (by default connectorStore in the home of its user)"
        raise ConfigError(f"There is no {_CONNECTORS} with connectors", where=str(place), next_step=step)
    return found


def positions_in(folder: Path) -> Iterator[PeerPosition]:
    """Of all sources. Raises ConfigError when the file is not what it should be."""
    file = _place(folder) / _POSITIONS
    for key, value in _pairs(file):
        partition, position = _object(key, file, key), _object(value, file, key)
        at, offset = _member(partition, "partition", file, key), _member(position, "offset", file, key)
        yield PeerPosition(str(partition.get("namespace")), at, offset, str(file))


def _place(folder: Path) -> Path:
    return folder / "config" if (folder / "config").is_dir() else folder


def _connectors(place: Path) -> Iterator[tuple[str, StoredConnector]]:
    for key, value in _pairs(place / _CONNECTORS):
        stored = _object(value, place / _CONNECTORS, key)
        given = _member(stored, "properties", place / _CONNECTORS, key)
        properties = {str(one): str(said) for one, said in given.items()}
        name = key.decode("utf-8", "replace")
        yield name, StoredConnector(name, properties, "paused" if stored.get("targetState") == _PAUSED else "running")


def _pairs(file: Path) -> Iterator[tuple[bytes, bytes]]:
    """Nothing where there is no file; what stood there before where it is empty, as a worker reads it."""
    text = _text(file) or _text(file.with_name(f"{file.name}.bak"))
    if not text:
        return
    for key, value in _read(text, file).items():
        try:
            yield b64decode(key, validate=True), b64decode(value, validate=True)
        except (ValueError, TypeError):
            raise _broken(file, key) from None


def _object(data: bytes, file: Path, key: bytes) -> Mapping[str, Any]:
    """Of the entry with this key."""
    return _read(data, file, key.decode("utf-8", "replace"))


def _member(stored: Mapping[str, Any], name: str, file: Path, key: bytes) -> Mapping[str, Any]:
    """An object in the one of that entry; empty where it is not there."""
    found = stored.get(name) or {}
    if not isinstance(found, dict):
        raise _broken(file, key.decode("utf-8", "replace"))
    return found


def _read(text: str | bytes, file: Path, entry: str = "") -> Mapping[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise _broken(file, entry)
    return found


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError):
        raise _broken(file) from None


def _broken(file: Path, entry: str = "") -> ConfigError:
    step = "Copy the folder again while its worker is stopped, or take the entry out of the copy"
    where = f"{file}, entry {entry[:_SHOWN]!r}" if entry else str(file)
    return ConfigError("This is not what RocketMQ Connect has written", where=where, next_step=step)
