"""The flat keys of RocketMQ Connect's file connectors. Pure."""

from __future__ import annotations

from typing import Any

from connect_core.sdk.flat import FlatClass, FlatEnd, FlatWriter, ignored, option

_PACKAGE = "org.apache.rocketmq.connect.file."


def _file(into: FlatWriter, key: str, value: Any) -> None:
    into.put(key, "path", value)
    into.notice("file: taken as filename, which is RocketMQ Connect's name for it")


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
                "batch.size": ignored(
                    "how much is read at a time follows limits and time; RocketMQ Connect ignores it too"
                ),
                "ordering.msg.enable": ignored("the lines of a file always keep their order"),
            },
            _MUST,
        ),
        records="lines",
    ),
    FlatClass("FileSinkConnector", _PACKAGE, "sink", FlatEnd(_KEYS, _MUST), records="lines"),
)
