"""Rows of payloads and keys, and keys of rows: what `key_format` does with records. Pure."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from connect_core.pipeline.formats.key_format import PLAIN_KEY, key_rows
from connect_core.pipeline.formats.known import FORMATS, read_format
from connect_core.pipeline.formats.payload_format import Encoded, Lookup, Reader, Writer
from connect_core.pipeline.formats.payloads import only, others, taken, with_column, with_values, without
from connect_core.rows.json_reading import Read
from connect_core.rows.types import Type
from connect_core.sdk.values import Json


def row_reader(parse: Json, lookup: Lookup | None) -> Reader:
    """Of a `parse` with rows, what it leaves out by default left out. Its reasons say of what they speak."""
    payloads = _saying(f"Not of format {parse['format']}", read_format(parse).reader(parse, lookup))
    form = parse.get("key_format", PLAIN_KEY)
    if form == PLAIN_KEY:
        return payloads
    of_key = {"fields": parse["key_fields"], "unknown": parse.get("unknown", "reject")}
    keys = _saying(f"Its key is not of format {form}", FORMATS[form].reader(of_key, None))
    names = [name for name, _ in key_rows(parse).fields]

    def read(records: pa.RecordBatch) -> Read:
        key = keys(with_values(records, records.column("key").cast(pa.binary())))
        return _joined(len(records), names, key, payloads(records))

    return read


def _saying(words: str, reader: Reader) -> Reader:
    def read(records: pa.RecordBatch) -> Read:
        made = reader(records)
        return made._replace(unfit=[(row, f"{words}: {why}") for row, why in made.unfit])

    return read


def _joined(count: int, names: list[str], key: Read, payload: Read) -> Read:
    """Of so many records, those that have both."""
    unfit = dict(key.unfit) | dict(payload.unfit)
    keys, payloads = (_of_others(one, unfit, count) for one in (key, payload))
    fields = [*(field.with_name(name) for field, name in zip(keys.type, names, strict=True)), *payloads.type]
    rows = pa.StructArray.from_arrays([*keys.flatten(), *payloads.flatten()], fields=fields)
    return payload._replace(rows=rows, unfit=sorted(unfit.items()))


def _of_others(read: Read, unfit: dict[int, str], count: int) -> pa.StructArray:
    """Its rows, but for those of records that are unfit."""
    places = others(count, [row for row, _ in read.unfit])
    return taken(read.rows, np.flatnonzero(~np.isin(places, list(unfit))))


def key_writer(encode: Json, rows: Type) -> Writer:
    """Of an `encode` with a format of keys, what it leaves out by default left out: records get another key."""
    names: list[str] = encode["key_fields"]
    known, form = dict(rows.fields), FORMATS[encode["key_format"]]
    write = form.writer(encode, Type("struct", fields=tuple((name, known[name]) for name in names)))

    def written(rows: pa.StructArray, records: pa.RecordBatch) -> Encoded:
        made = write(only(rows, names), records)
        keys = made.records.column("value").cast(pa.string())
        kept = without(records, [row for row, _ in made.unfit])
        return Encoded(with_column(kept, "key", keys), [(row, f"key: {why}") for row, why in made.unfit])

    return written


def both(first: Writer, second: Writer) -> Writer:
    """One after the other, of the records that the first can write."""

    def written(rows: pa.StructArray, records: pa.RecordBatch) -> Encoded:
        made = first(rows, records)
        places = others(len(records), [row for row, _ in made.unfit])
        more = second(taken(rows, places), made.records)
        unfit = dict(made.unfit) | {int(places[row]): why for row, why in more.unfit}
        return Encoded(more.records, sorted(unfit.items()))

    return written
