"""Keys that Debezium's connectors of several databases have. Pure."""

from __future__ import annotations

import re
from typing import Any

from connect_core.sdk.flat import FlatHandler, FlatWriter

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
