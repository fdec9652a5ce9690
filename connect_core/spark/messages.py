"""Rows of a DataFrame -> what a message needs of each: body, key, tags, user properties, topic, queue. Pure.

What RocketMQ could not keep, or would take for something else, is refused before anything is sent.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from connect_core.errors import ConfigError, DataError, Fault
from connect_core.rocketmq.wire.properties import KEYS, TAGS, UNIQUE_KEY, kept_in_copies
from connect_core.sdk.records import COORDINATES_PROPERTY
from connect_core.spark.options import WriteOptions
from connect_core.systems.rocketmq.marking import fixed, hex_digits, joined, user_properties

_TEXT = ("string", "varchar", "char")
_HEADERS = "map<string,string>"
_ROLES: dict[str, tuple[str, ...]] = {
    "value": ("binary", *_TEXT),
    "key": _TEXT,
    "tags": _TEXT,
    "headers": (_HEADERS, "binary"),
    "topic": _TEXT,
}
"""What a column can be, and what its type then begins with, in Spark's words."""
_OWN_NAMES = frozenset({KEYS, TAGS, UNIQUE_KEY, COORDINATES_PROPERTY})
_NAME_END, _PAIR_END = b"\x01", b"\x02"
_SHOWN_CHARACTERS = 60


def check_mode(overwrite: bool) -> None:
    if overwrite:
        raise ConfigError(
            "A topic cannot be overwritten: messages are only ever added",
            next_step='Write with mode("append")',
        )


@dataclass(frozen=True)
class Mapped:
    """The column of each role that a DataFrame has."""

    columns: dict[str, str]

    def records(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """`value`, `key`, `tags`, `headers` (encoded as `records.encode_headers` does) and `topic`, null where there is
        nothing. Raises DataError for headers that RocketMQ could not keep."""
        made = {role: self._column(batch, role) for role in _ROLES}
        return pa.RecordBatch.from_pydict(made)

    def _column(self, batch: pa.RecordBatch, role: str) -> pa.Array:
        if role not in self.columns:
            return pa.nulls(len(batch), pa.binary() if role in ("value", "headers") else pa.string())
        given = batch.column(self.columns[role])
        if role == "headers":
            return stored_headers(given) if pa.types.is_binary(given.type) else encoded_headers(given)
        return given.cast(pa.binary() if role == "value" else pa.string())


def mapped(given: Sequence[tuple[str, str]], options: WriteOptions) -> Mapped:
    """From the names and types of a DataFrame's columns. Raises ConfigError with every fault."""
    wanted = {role: str(getattr(options, f"{role}_column")) for role in _ROLES}
    types = dict(given)
    found = {role: name for role, name in wanted.items() if name in types}
    faults = [*_missing(wanted, types, options), *_misfits(found, types), *_left_over(given, found)]
    faults += _topics(found, options)
    if faults:
        raise ConfigError("These columns cannot be written as messages", faults=tuple(faults))
    return Mapped(found)


def _missing(wanted: dict[str, str], types: dict[str, str], options: WriteOptions) -> list[Fault]:
    said = {role for role in _ROLES if f"{role}_column" in options.model_fields_set}
    return [
        Fault(name, f'there is no such column: name the one with the {role} by option("{role}_column", …)')
        for role, name in wanted.items()
        if name not in types and (role in said or role == "value")
    ]


def _misfits(found: dict[str, str], types: dict[str, str]) -> list[Fault]:
    return [
        Fault(name, f"is {types[name]}, but {role} must be {' or '.join(_ROLES[role][:2])}")
        for role, name in found.items()
        if not types[name].startswith(_ROLES[role])
    ]


def _left_over(given: Sequence[tuple[str, str]], found: dict[str, str]) -> list[Fault]:
    names = [name for name, _ in given]
    faults = [Fault(name, "is no part of a message: drop it") for name in names if name not in found.values()]
    roles = sorted({name for name in found.values() if list(found.values()).count(name) > 1})
    faults += [Fault(name, "stands for two parts of a message") for name in roles]
    return faults + [Fault(name, "is there twice") for name in sorted({n for n in names if names.count(n) > 1})]


def _topics(found: dict[str, str], options: WriteOptions) -> list[Fault]:
    if options.topic and "topic" in found:
        return [Fault(found["topic"], "says the topic, and so does an option: drop the column, or the option")]
    if not options.topic and "topic" not in found:
        return [Fault("topic", "is said by no option and no column")]
    return []


def encoded_headers(maps: pa.Array) -> pa.Array:
    """One property string a row; empty where there are none. Raises DataError for what would come back as something
    else: reserved or empty names, empty values, separators."""
    names, values = maps.keys.cast(pa.string()), maps.items.cast(pa.string())
    _check_pairs(names, values)
    pairs = joined(names.cast(pa.binary()), _NAME_END, values.cast(pa.binary()), _PAIR_END)
    return pc.binary_join(pa.ListArray.from_arrays(maps.offsets, pairs), b"")


def stored_headers(strings: pa.Array) -> pa.Array:
    """Property strings as they are, of which every one was looked at. Raises DataError as `encoded_headers` does."""
    try:
        texts = pc.fill_null(strings.cast(pa.string()), "")
    except pa.ArrowInvalid:
        raise DataError("Headers are not UTF-8") from None
    pairs = pc.split_pattern(texts, _PAIR_END.decode()).flatten()
    given = pairs.filter(pc.not_equal(pairs, ""))
    parts = pc.split_pattern(given, _NAME_END.decode(), max_splits=1)
    # Behind the end of the last pair of each there is nothing, and nowhere else.
    ended = pc.or_(pc.equal(texts, ""), pc.ends_with(texts, _PAIR_END.decode()))
    whole = pc.all(ended, min_count=0).as_py() and len(pairs) - len(given) == len(texts)
    if not whole or not pc.all(pc.equal(pc.list_value_length(parts), 2), min_count=0).as_py():
        raise DataError(
            "Headers are no properties as RocketMQ stores them: each is name 0x01 value 0x02",
            next_step='Read them with option("headers", "binary"), or give them as map<string,string>',
        )
    _check_pairs(pc.list_element(parts, 0), pc.list_element(parts, 1))
    return texts.cast(pa.binary())


def _check_pairs(names: pa.Array, values: pa.Array) -> None:
    for name in pc.unique(names).to_pylist():
        _check_name(name)
    _check_values(names, values)


def _check_name(name: str) -> None:
    shown = repr(name)[:_SHOWN_CHARACTERS]
    if not name or "\x01" in name or "\x02" in name:
        raise DataError(f"A header's name is empty or holds a control character (1 or 2): {shown}")
    if name in _OWN_NAMES or not kept_in_copies(name):
        raise DataError(
            f"A header has the name {shown}, which means something to RocketMQ or Waybill",
            next_step="Give it another name; key and tags have columns of their own",
        )


def _check_values(names: pa.Array, values: pa.Array) -> None:
    empty = pc.equal(pc.fill_null(values, ""), "")
    wrong = pc.or_(empty, pc.fill_null(pc.match_substring(values, "\x02"), False))
    if pc.any(wrong, min_count=0).as_py():
        name = names.filter(wrong)[0].as_py()
        raise DataError(
            f"A header has no value, or one with the control character 2, which RocketMQ cannot keep: {name!r}",
            next_step="Leave such headers out of the map",
        )


def message_ids(job: str, partition: int, numbers: NDArray[np.int64]) -> pa.Array:
    """The properties with which RocketMQ's consumers tell messages apart: the same when Spark runs a task twice."""
    own = hashlib.blake2b(f"{job}:{partition}".encode(), digest_size=8).hexdigest().upper()
    return joined(f"{UNIQUE_KEY}\x01{own}".encode(), fixed(hex_digits(numbers, 16)), _PAIR_END)


def property_strings(records: pa.RecordBatch, ids: pa.Array) -> pa.Array:
    """The user's own come first: of equal names readers take the last."""
    return joined(*user_properties(records), ids)


def queue_numbers(keys: pa.Array, routing: str, partition: int, queues: int) -> NDArray[np.int64]:
    """For each row which of the topic's queues it goes to. The same for equal keys, in any job and any process."""
    if routing == "partition" or keys.null_count == len(keys):
        return np.full(len(keys), partition % queues, dtype=np.int64)
    chosen = (crc32(key.encode()) % queues if key else partition % queues for key in keys.to_pylist())
    return np.fromiter(chosen, dtype=np.int64, count=len(keys))
