"""Keys that Debezium's connectors of several databases have. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from connect_core.sdk.flat import FlatClass, FlatEnd, FlatHandler, FlatWriter, ignored, option

_TABLE = re.compile(r"[\w$]+(?:\\?\.[\w$]+)?")
"""A name, where Debezium takes an expression: its point may be escaped."""


def tables(into: FlatWriter, key: str, value: Any) -> None:
    names = [one.strip() for one in str(value).split(",") if one.strip()]
    if unfit := [one for one in names if not _TABLE.fullmatch(one)]:
        words = "is an expression: name tables, or use a native document, with patterns such as sales.*"
        into.refuse(key, f"{unfit[0]!r} {words}")
        return
    into.put(key, "tables", [one.replace("\\.", ".") for one in names])


def number(name: str) -> FlatHandler:
    def put(into: FlatWriter, key: str, value: Any) -> None:
        text = str(value).strip()
        if text.isdecimal():
            into.put(key, name, int(text))
        else:
            into.refuse(key, f"{value!r} is not a number")

    return put


def only(*fit: str) -> FlatHandler:
    """The key may be there with a value that says what is done here."""

    def check(into: FlatWriter, key: str, value: Any) -> None:
        if str(value).strip().lower() not in fit:
            into.refuse(key, f"{value!r} is not available; events have what `{fit[0]}` gives")

    return check


def skipped(into: FlatWriter, key: str, value: Any) -> None:
    left_out = {one.strip() for one in str(value).split(",")} - {"none", ""}
    if left_out - {"t"}:
        into.refuse(key, "every kind of change comes; filter.when of a native document leaves some out")
    elif left_out:
        into.notice(f"{key}: a truncate comes too, with op `t`")


def snapshot_mode(more: Mapping[str, str] = MappingProxyType({})) -> FlatHandler:
    """`more` are words that one database alone has."""
    meant = {"initial": "initial", "never": "never", "no_data": "never", **more}

    def put(into: FlatWriter, key: str, value: Any) -> None:
        word = str(value).strip().lower()
        if word in meant:
            into.put(key, "snapshot", meant[word])
        else:
            step = "waybill snapshot NAME brings the rows of tables at any time"
            into.refuse(key, f"{value!r} is not available; there are initial and no_data; {step}")

    return put


def tombstones(into: FlatWriter, key: str, value: Any) -> None:
    if str(value).strip().lower() != "false":
        into.notice(f"{key}: no topic has tombstones here: a delete is one record")


def encrypted(into: FlatWriter, key: str, value: Any) -> None:
    """How a connection is encrypted, in the words of either database."""
    word = str(value).strip().lower().replace("_", "-")
    if word in ("verify-full", "verify-identity"):
        into.put(key, "tls", True)
    elif word in ("require", "required", "verify-ca"):
        into.refuse(key, f"{value!r} does not check the name of the server: use {_CHECKED[key]}")
    else:
        into.ignore(key, f"the connection is encrypted where the server can; {_CHECKED[key]} demands and checks it")


_CHECKED = {"database.sslmode": "verify-full", "database.ssl.mode": "verify_identity"}

_ONE_TOPIC = "the topic is that of connect.topicname or topic"
_BATCHES = "how much is read at a time follows limits and time"
COMMON: Mapping[str, FlatHandler] = {
    "database.hostname": option("host"),
    "database.port": number("port"),
    "database.user": option("user"),
    "database.password": option("password"),
    "database.server.name": ignored(_ONE_TOPIC),
    "topic.prefix": ignored(_ONE_TOPIC),
    "decimal.handling.mode": only("precise"),
    "binary.handling.mode": only("base64", "bytes"),
    "tombstones.on.delete": tombstones,
    "skipped.operations": skipped,
    "provide.transaction.metadata": ignored("each event has its transaction"),
    **dict.fromkeys(("max.batch.size", "max.queue.size", "poll.interval.ms"), ignored(_BATCHES)),
}
"""Keys that mean the same with each database."""


def flat_class(name: str, package: str, end: FlatEnd) -> FlatClass:
    return FlatClass(name, package, "source", end, records="events", gives_json=True, schemas_option="schemas")
