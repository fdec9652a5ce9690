"""What the log says of a table before it has rows of it: its columns as they were then, and its key. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from json.encoder import encode_basestring as quoted
from typing import NamedTuple

from connect_core.systems.mysql.binlog import columns as of
from connect_core.systems.mysql.binlog.charsets import decoder
from connect_core.systems.mysql.binlog.columns import FieldForm, LoggedField, form_of
from connect_core.systems.mysql.binlog.log_events import LogEvent, RowsOf, counted
from connect_core.systems.mysql.binlog.table_names import TableName

_NUMBER_BYTES, _FLAGS_BYTES = 6, 2
_SIGNS, _CHARSET, _CHARSETS, _NAMES, _SETS, _ENUMS, _KEY, _KEY_PREFIXES = 1, 2, 3, 4, 5, 6, 8, 9
_LABEL_CHARSET, _LABEL_CHARSETS = 10, 11
"""Kinds of what is there with binlog_row_metadata=FULL."""
NO_NAMES = "The log has no names of columns: binlog_row_metadata of the server was not FULL then"

Charsets = Callable[[int], str]
"""Of a collation's number."""


class TableMap(NamedTuple):
    name: TableName
    columns: tuple[LoggedField, ...]
    forms: tuple[FieldForm, ...]
    key: tuple[int, ...]
    """Places of its columns; empty without one."""
    unfit: str = ""
    """Why rows of it cannot be read."""
    labels: tuple[str, ...] = ()
    """Of columns their names as members of JSON objects have them."""

    def rows(self, rows: RowsOf) -> Iterator[tuple[list[bytes | None], ...]]:
        """Of each row its values as the log has them: of an update before and after. Each image must have all
        columns."""
        data, at = rows.images, 0
        while at < len(data):
            images = []
            for _ in rows.present:
                values, at = self._image(data, at)
                images.append(values)
            yield tuple(images)

    def count(self, rows: RowsOf) -> int:
        """How many these are. Reads where values end, and nothing else."""
        data, at, images, width = rows.images, 0, 0, (len(self.forms) + 7) // 8
        while at < len(data):
            nulls, at = int.from_bytes(data[at : at + width], "little"), at + width
            for place, form in enumerate(self.forms):
                if not nulls >> place & 1:
                    at = form.end(data, at)
            images += 1
        return images // len(rows.present)

    def _image(self, data: bytes, at: int) -> tuple[list[bytes | None], int]:
        begin, at = at, at + (len(self.forms) + 7) // 8
        nulls = int.from_bytes(data[begin:at], "little")
        values: list[bytes | None] = []
        for form in self.forms:
            if nulls & 1:
                values.append(None)
            else:
                end = form.end(data, at)
                values.append(data[at:end])
                at = end
            nulls >>= 1
        return values, at


def number_of(event: LogEvent) -> int:
    """By which rows name the table."""
    return int.from_bytes(event.body[:_NUMBER_BYTES], "little")


def said_of_table(event: LogEvent) -> bytes:
    """Mostly the same in each transaction, whatever number the table has in it."""
    return event.body[_NUMBER_BYTES:]


@lru_cache(1_000)
def name_of(said: bytes) -> TableName:
    database, at = _name(said, _FLAGS_BYTES)
    table, _ = _name(said, at)
    return TableName(database, table)


def _name(body: bytes, at: int) -> tuple[str, int]:
    behind = at + 1 + body[at]
    return body[at + 1 : behind].decode(), behind + 1


def table_map(event: LogEvent, charsets: Charsets, is_mariadb: bool) -> TableMap:
    body = event.body
    name = name_of(said_of_table(event))
    _, at = _name(body, _NUMBER_BYTES + _FLAGS_BYTES)
    _, at = _name(body, at)
    count, at = counted(body, at)
    kinds, at = [*body[at : at + count]], at + count
    length, at = counted(body, at)
    metas, more = [*_metas(kinds, body[at : at + length])], at + length + (count + 7) // 8
    said = dict(_parts(body[more:]))
    if _NAMES not in said:
        return TableMap(name, (), (), (), NO_NAMES)
    kinds = [of.real_kind(kind, meta) for kind, meta in zip(kinds, metas, strict=True)]
    columns = [*_columns(kinds, metas, said, charsets, is_mariadb)]
    forms = [form_of(one) for one in columns]
    unknown = [f"{one.name} has type {one.kind}" for one, form in zip(columns, forms, strict=True) if form is None]
    unfit = f"LoggedField {unknown[0]} of the log, which is not read" if unknown else ""
    labels = tuple(f"{quoted(one.name)}:" for one in columns)
    return TableMap(name, tuple(columns), tuple(one for one in forms if one), _key(said), unfit, labels)


def _metas(kinds: Sequence[int], data: bytes) -> Iterator[bytes]:
    at = 0
    for kind in kinds:
        width = of.meta_bytes(kind)
        yield data[at : at + width]
        at += width


def _parts(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(data):
        kind = data[at]
        length, at = counted(data, at + 1)
        yield kind, data[at : at + length]
        at += length


def _columns(
    kinds: Sequence[int], metas: Sequence[bytes], said: Mapping[int, bytes], charsets: Charsets, is_mariadb: bool
) -> Iterator[LoggedField]:
    names = [one.decode() for one in _texts(said[_NAMES])]
    signed = iter(_bits(said.get(_SIGNS, b"")))
    # MariaDB counts geometries among texts here.
    texts = of.TEXTS | {of.GEOMETRY} if is_mariadb else of.TEXTS
    of_texts = iter(_collations(said, _CHARSET, _CHARSETS, sum(kind in texts for kind in kinds)))
    labelled = (of.ENUM, of.SET)
    of_labels = iter(_collations(said, _LABEL_CHARSET, _LABEL_CHARSETS, sum(kind in labelled for kind in kinds)))
    labels = {of.ENUM: iter(_lists(said.get(_ENUMS, b""))), of.SET: iter(_lists(said.get(_SETS, b"")))}
    for name, kind, meta in zip(names, kinds, metas, strict=True):
        column = LoggedField(name, kind, meta, unsigned=kind in of.NUMBERS and next(signed, False))
        if kind in texts:
            column = column._replace(charset=charsets(next(of_texts)))
        elif kind in labelled:
            charset = charsets(next(of_labels))
            column = column._replace(charset=charset, labels=_decoded(next(labels[kind]), charset))
        yield column


def _decoded(labels: Sequence[bytes], charset: str) -> tuple[str, ...]:
    decoded = decoder(charset)
    return tuple(decoded(one) if decoded else one.decode(errors="replace") for one in labels)


def _collations(said: Mapping[int, bytes], usual: int, each: int, count: int) -> list[int]:
    """Of each text its own, or one for all and those that have another one."""
    if each in said:
        return [*_numbers(said[each])]
    first, *others = _numbers(said.get(usual, b"")) or [0]
    exceptions = dict(zip(others[::2], others[1::2], strict=True))
    return [exceptions.get(place, first) for place in range(count)]


def _key(said: Mapping[int, bytes]) -> tuple[int, ...]:
    if _KEY in said:
        return tuple(_numbers(said[_KEY]))
    return tuple(_numbers(said.get(_KEY_PREFIXES, b""))[::2])


def _bits(data: bytes) -> Iterator[bool]:
    for byte in data:
        for place in range(7, -1, -1):
            yield bool(byte >> place & 1)


def _numbers(data: bytes) -> list[int]:
    at, found = 0, []
    while at < len(data):
        number, at = counted(data, at)
        found.append(number)
    return found


def _texts(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        length, at = counted(data, at)
        yield data[at : at + length]
        at += length


def _lists(data: bytes) -> Iterator[list[bytes]]:
    at = 0
    while at < len(data):
        count, at = counted(data, at)
        found = []
        for _ in range(count):
            length, at = counted(data, at)
            found.append(data[at : at + length])
            at += length
        yield found
