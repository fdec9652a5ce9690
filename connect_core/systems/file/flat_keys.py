"""The flat keys of RocketMQ Connect's file connectors and of those of Kafka Connect, and the positions that the
first keeps of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from connect_core.sdk.flat import FlatClass, FlatEnd, FlatWriter, ReachedOffset, ignored, option

_PACKAGE = "org.apache.rocketmq.connect.file."
_KAFKA_PACKAGE = "org.apache.kafka.connect.file."


def _file(into: FlatWriter, key: str, value: Any) -> None:
    into.put(key, "path", value)
    into.notice("file: taken as filename, which is RocketMQ Connect's name for it")


def _reached(
    options: Mapping[str, Any], partition: Mapping[str, Any], position: Mapping[str, Any]
) -> ReachedOffset | None:
    """Both products count the characters of Java, two for one beyond the basic plane; here offsets are bytes. Sources:
    `FileSourceTask` of rocketmq-connect-sample, and `FileStreamSourceTask` of Kafka Connect, which it was made from."""
    path, text = Path(str(options["path"])), str(position.get("nextPosition", position.get("position", "")))
    read = Path(str(partition.get("filename", ""))).parts
    if path.parts[len(path.parts) - len(read) :] != read:
        return None
    if not text.isdecimal():
        raise ValueError(f"its position {text!r} is no number")
    try:
        with path.open("rb") as file:
            return ReachedOffset(str(path), _bytes_before(file, int(text)))
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from None


def _bytes_before(lines: Iterable[bytes], characters: int) -> int:
    counted = offset = 0
    for line in lines:
        if counted >= characters or not line.endswith(b"\n"):
            break
        counted += len(line.decode("utf-8", "replace").encode("utf-16-le")) // 2
        offset += len(line)
    if counted != characters:
        raise ValueError(f"its position {characters:,} is not where a line of the file begins: it is another file now")
    return offset


_BATCHES = "how much is read at a time follows limits and time"
_KEYS = {"filename": option("path"), "file": _file}
_MUST = {"filename|file": "the file to read or write"}
CLASSES = (
    FlatClass(
        "FileSourceConnector",
        _PACKAGE,
        "source",
        FlatEnd(
            {
                **_KEYS,
                "batch.size": ignored(f"{_BATCHES}; RocketMQ Connect ignores it too"),
                "ordering.msg.enable": ignored("the lines of a file always keep their order"),
            },
            _MUST,
        ),
        records="lines",
        reached=_reached,
    ),
    FlatClass(
        "FileStreamSourceConnector",
        _KAFKA_PACKAGE,
        "source",
        FlatEnd({"file": option("path"), "batch.size": ignored(_BATCHES)}, {"file": "the file to read"}),
        records="lines",
        reached=_reached,
    ),
    FlatClass(
        "FileStreamSinkConnector",
        _KAFKA_PACKAGE,
        "sink",
        FlatEnd({"file": option("path")}, {"file": "the file to write"}),
        records="lines",
    ),
    FlatClass("FileSinkConnector", _PACKAGE, "sink", FlatEnd(_KEYS, _MUST), records="lines"),
)
