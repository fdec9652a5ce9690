"""The keys of JDBC connectors: of RocketMQ Connect, and of Confluent and Aiven for Kafka Connect. Pure.

Each database has classes of these names, and takes the documents whose URL is of it. Sources: `JdbcSinkConfig` and
`JdbcSourceConfig` of rocketmq-connect-jdbc; https://docs.confluent.io/kafka-connectors/jdbc/current, "Configuration
reference" of source and sink.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote

from connect_core.sdk.flat import FlatClass, FlatEnd, FlatHandler, FlatWriter, ignored, option

PACKAGES = (
    ("org.apache.rocketmq.connect.jdbc.sink.", "org.apache.rocketmq.connect.jdbc.source."),
    ("org.apache.rocketmq.connect.jdbc.mysql.sink.", "org.apache.rocketmq.connect.jdbc.mysql.source."),
    ("io.confluent.connect.jdbc.", "io.confluent.connect.jdbc."),
    ("io.aiven.connect.jdbc.", "io.aiven.connect.jdbc."),
)
"""Of sinks and of sources; the second one is in the examples of RocketMQ Connect alone."""
URL = "connection.url"
_URL = re.compile(
    r"jdbc:(?P<kind>\w+)://(?P<host>[^/:?#]+)(?::(?P<port>\d+))?/(?P<database>[^/?#]+)(?:\?(?P<query>.*))?"
)
_CHECKED = {"sslmode": ("verify-full", "verify_identity"), "sslMode": ("verify-full", "VERIFY_IDENTITY")}
_SECRETS = {"user": "connection.user", "password": "connection.password"}


def jdbc_classes(kinds: Collection[str]) -> tuple[FlatClass, ...]:
    """Of a database whose URLs are `jdbc:KIND://…`, by the names of its options `host`, `port`, `database`, `table`."""
    return _classes(kinds, FlatEnd(_SINK, _SINK_MUST, _complete_sink), FlatEnd(_SOURCE, _SOURCE_MUST))


def jdbc_classes_of_files(kind: str) -> tuple[FlatClass, ...]:
    """Of a database that is a file, whose URLs are `jdbc:KIND:PATH`, by the names of its options `url` and `table`."""
    sink = FlatEnd({**_SINK, **_OF_FILE}, {URL: _SINK_MUST[URL]}, _complete_sink)
    must = {key: words for key, words in _SOURCE_MUST.items() if key != "connection.user"}
    return _classes((kind,), sink, FlatEnd({**_SOURCE, **_OF_FILE}, must))


def _classes(kinds: Collection[str], sink: FlatEnd, source: FlatEnd) -> tuple[FlatClass, ...]:
    def fits(given: Mapping[str, Any]) -> bool:
        found = re.match(r"jdbc:(\w+):", str(given.get(URL, "")).strip())
        return found is not None and found[1] in kinds

    sinks = (
        FlatClass("JdbcSinkConnector", package, "sink", sink, records="rows", takes_rows=True, fits=fits)
        for package, _ in PACKAGES
    )
    sources = (
        FlatClass("JdbcSourceConnector", package, "source", source, records="rows", gives_json=True, fits=fits)
        for _, package in PACKAGES
    )
    return (*sinks, *sources)


def _url(into: FlatWriter, key: str, value: Any) -> None:
    found = _URL.fullmatch(str(value).strip())
    if not found:
        into.refuse(key, "is not of the form jdbc:KIND://HOST:PORT/DATABASE")
        return
    into.put(key, "host", found["host"])
    if found["port"]:
        into.put(key, "port", int(found["port"]))
    into.put(key, "database", unquote(found["database"]))
    for name, given in parse_qsl(found["query"] or ""):
        _url_option(into, key, name, given)


def _file_url(into: FlatWriter, key: str, value: Any) -> None:
    _, kind, path = str(value).strip().split(":", 2)
    if not path or path.startswith((":", "file:")) or {"?", "#"} & set(path):
        into.refuse(key, f"is not of the form jdbc:{kind}:PATH: nothing but the path of a file is taken")
    else:
        into.put(key, "url", f"{kind}:///{path}")


def _url_option(into: FlatWriter, key: str, name: str, given: str) -> None:
    if name in _SECRETS:
        into.refuse(key, f"has a {name}: write {_SECRETS[name]}, a password as a reference such as ${{env:NAME}}")
    elif given in _CHECKED.get(name, ()):
        into.put(key, "tls", True)
    elif name.lower() in ("usessl", "ssl", "sslmode") and given.lower() not in ("false", "disable", "disabled"):
        into.refuse(key, f"{name}={given} does not check the name of the server: write sslmode=verify-full")
    else:
        into.notice(f"{key}: {name} has no effect here")


def _mode(into: FlatWriter, key: str, value: Any) -> None:
    word = str(value).strip().lower()
    if word in ("insert", "upsert"):
        into.put(key, "mode", word)
    else:
        into.refuse(key, f"{value!r} is not available; there are insert and upsert")


def _key_mode(into: FlatWriter, key: str, value: Any) -> None:
    word = str(value).strip().lower()
    if word == "record_key":
        into.notice(f"{key}: the columns of the key come from the fields of the record, by pk.fields")
    elif word not in ("none", "record_value"):
        into.refuse(key, f"{value!r} is not available; there are record_value and none")


def _key_fields(into: FlatWriter, key: str, value: Any) -> None:
    names = [one.strip() for one in str(value).split(",") if one.strip()]
    if names and str(into.given.get("insert.mode", "insert")).strip().lower() == "upsert":
        into.put(key, "key", names)
    elif names:
        into.ignore(key, "a key counts where insert.mode is upsert")


def _flag(name: str) -> FlatHandler:
    def put(into: FlatWriter, key: str, value: Any) -> None:
        word = str(value).strip().lower()
        if word not in ("true", "false"):
            into.refuse(key, f"{value!r} is neither true nor false")
        elif word == "true":
            into.put(key, name, True)

    return put


def _only(*fit: str, why: str) -> FlatHandler:
    """The key may be there with a value that says what is done here."""

    def check(into: FlatWriter, key: str, value: Any) -> None:
        if str(value).strip().lower() not in fit:
            into.refuse(key, f"{value!r} is not available: {why}")

    return check


def _read_elsewhere(into: FlatWriter, key: str, value: Any) -> None:
    """By `_complete_sink`."""


def _complete_sink(into: FlatWriter) -> None:
    """A table is called as the topic where nothing else is said."""
    named = str(into.given.get("table.name.format") or "${topic}").strip()
    topics = str(into.given.get("connect.topicnames") or into.given.get("topics") or "")
    names = [one.strip() for one in re.split("[;,]", topics) if one.strip()]
    if "${topic}" in named and len(names) != 1:
        into.refuse("table.name.format", "a connector writes one table: name it, or read one topic")
    elif names:
        into.put("table.name.format", "table", named.replace("${topic}", names[0]))


def _tables(into: FlatWriter, key: str, value: Any) -> None:
    """Empty beside a query: none."""
    names = _names(value)
    if len(names) == 1:
        into.put(key, "table", names[0])
    elif names:
        into.put(key, "tables", names)
        into.notice(f"{key}: {{topic}} in connect.topicname stands for the name of a table; else all go to one topic")
    elif not _query_of(into):
        into.refuse(key, "name a table")


def _query(into: FlatWriter, key: str, value: Any) -> None:
    """Where its result has no primary key, rows need a number in each mode."""
    if not _query_of(into):
        return
    if any(_names(into.given.get(one)) for one in _TABLES):
        into.refuse(key, "a connector reads a query or tables: leave one of both out")
    elif not str(into.given.get(_NUMBERS) or "").strip():
        into.refuse(
            key, f"needs {_NUMBERS} in each mode: a column of whole numbers that tells rows of its result apart"
        )
    else:
        into.put(key, "query", _query_of(into))


def _column(into: FlatWriter, key: str, value: Any) -> None:
    """Empty: the primary key is looked for, here too."""
    if (mode := _mode_of(into)) in ("timestamp", "bulk") and not _query_of(into):
        into.ignore(key, f"mode={mode} tells rows apart by the primary key")
    elif str(value).strip():
        into.put(key, "incrementing", str(value).strip())


def _source_mode(into: FlatWriter, key: str, value: Any) -> None:
    if _mode_of(into) == "bulk":
        into.put(key, "bulk", True)
    elif _mode_of(into) not in ("incrementing", *_TIMED):
        into.refuse(key, f"{value!r} is not available: {_MODE}")
    elif _mode_of(into) in _TIMED and not _names(into.given.get("timestamp.column.name")):
        into.refuse(key, f"{value!r} needs timestamp.column.name, a column with the time of the last change")


def _time_column(into: FlatWriter, key: str, value: Any) -> None:
    names = _names(value)
    if _mode_of(into) not in _TIMED:
        into.ignore(key, f"mode={_mode_of(into)} reads no times")
    elif len(names) > 1:
        into.refuse(
            key, "one column has the time of the last change, and takes no NULL: a query can make one of several"
        )
    elif names:
        into.put(key, "timestamp", names[0])


def _delay(into: FlatWriter, key: str, value: Any) -> None:
    """A shorter one than the default would give up what open transactions, which are waited for, do not show."""
    text = str(value).strip()
    if not text.isdecimal():
        into.refuse(key, f"{value!r} is not a number of milliseconds")
    elif _mode_of(into) not in _TIMED or int(text) <= 1000:
        into.ignore(key, "it is one second at least, and open transactions are waited for")
    else:
        into.put(key, "delay_s", int(text) / 1000)


def _query_of(into: FlatWriter) -> str:
    return str(into.given.get("query") or "").strip()


def _mode_of(into: FlatWriter) -> str:
    return str(into.given.get("mode", "")).strip().lower()


def _names(value: Any) -> list[str]:
    return [one.strip() for one in str(value or "").split(",") if one.strip()]


def _poll(into: FlatWriter, key: str, value: Any) -> None:
    text = str(value).strip()
    if text.isdecimal():
        into.put(key, "every_s", max(int(text) / 1000, 0.01))
    else:
        into.refuse(key, f"{value!r} is not a number of milliseconds")


_RETRIES = "a failed run is tried again as a whole, by the program that started it"
_BATCHES = "how much moves at a time follows limits and time"
_CONNECTION: Mapping[str, FlatHandler] = {
    URL: _url,
    "connection.user": option("user"),
    "connection.password": option("password"),
    "connection.attempts": ignored(_RETRIES),
    "connection.backoff.ms": ignored(_RETRIES),
    "dialect.name": ignored("the URL says which database it is"),
    "quote.sql.identifiers": ignored("names are always quoted"),
    "table.types": _only("table", why="tables alone are read and written"),
    "db.timezone": _only("utc", why="moments are in UTC"),
}
_SINK: Mapping[str, FlatHandler] = {
    **_CONNECTION,
    "insert.mode": _mode,
    "pk.mode": _key_mode,
    "pk.fields": _key_fields,
    "delete.enabled": _only("false", why="a table deletes rows by change events (parse: {format: debezium})"),
    "auto.create": _flag("create_table"),
    "auto.evolve": _flag("add_columns"),
    "table.name.format": _read_elsewhere,
    "table.name.from.header": _only("false", why="a connector writes one table"),
    "max.retries": ignored(_RETRIES),
    "retry.backoff.ms": ignored(_RETRIES),
    "batch.size": ignored(_BATCHES),
}
_SINK_MUST = {URL: "where the database is", "connection.user": "who writes"}
_TIMED = ("timestamp", "timestamp+incrementing")
_NUMBERS = "incrementing.column.name"
_TABLES = ("table.whitelist", "table.include.list")
_MODE = (
    "there are bulk, incrementing, timestamp and timestamp+incrementing; a stream of changes (postgresql_changes) has"
    " updates and deletes too"
)
_SOURCE: Mapping[str, FlatHandler] = {
    **_CONNECTION,
    "mode": _source_mode,
    _NUMBERS: _column,
    "timestamp.column.name": _time_column,
    "timestamp.delay.interval.ms": _delay,
    **dict.fromkeys(_TABLES, _tables),
    "query": _query,
    "query.suffix": _only("", why="write it into the query"),
    "topic.prefix": ignored("the topic is that of connect.topicname or topic"),
    "poll.interval.ms": _poll,
    "batch.max.rows": ignored(_BATCHES),
    "numeric.mapping": ignored("numbers are written exactly"),
    "numeric.precision.mapping": ignored("numbers are written exactly"),
    "validate.non.null": _only("true", why="columns of numbers and of times take no NULL"),
}
_SOURCE_MUST = {
    URL: "where the database is",
    "connection.user": "who reads",
    "mode": "incrementing",
    "table.whitelist|table.include.list|query": "the table to read",
}
_NO_USERS = "a file has no users"
_OF_FILE: Mapping[str, FlatHandler] = {
    URL: _file_url,
    "connection.user": ignored(_NO_USERS),
    "connection.password": ignored(_NO_USERS),
}
