"""Formats whose fields are texts: patterns, CSV, logfmt, access logs; and a payload that is one text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from connect_core.pipeline.formats.patterns import TEXT_FORMAT, check_groups, known_fields, pattern_of
from connect_core.pipeline.formats.payload_format import Lookup, PayloadFormat, Reader, Writer, of_values, to_values
from connect_core.rows.types import Type
from connect_core.sdk.values import Json

if TYPE_CHECKING:
    import pyarrow as pa

    from connect_core.rows.json_reading import Read
    from connect_core.rows.json_writing import WrittenRows

TEXT = Type("text")


class TextFields(PayloadFormat):
    """Of payloads whose format names their fields. Those of logfmt each payload names itself."""

    def check_reading(self, parse: Json) -> None:
        names = _names(parse) or []
        if twice := {name for name in names if names.count(name) > 1}:
            raise ValueError(f"two fields have the name {min(twice)!r}")

    def rows(self, parse: Json) -> Type | None:
        names = _names(parse)
        return Type("struct", fields=tuple((name, TEXT) for name in names)) if names else None

    def reader(self, parse: Json, lookup: Lookup | None) -> Reader:
        import pyarrow as pa

        from connect_core.pipeline.parsing import parser
        from connect_core.rows.json_reading import Read

        names, parsed = _names(parse) or [], parser(parse)

        def read(values: pa.Array) -> Read:
            payloads, unfit = parsed(values)
            there = [one for one in payloads if one is not None]
            columns = [pa.array([one.get(name) for one in there], pa.string()) for name in names]
            return Read(pa.StructArray.from_arrays(columns, list(names)), unfit)

        return of_values(read)


class Csv(TextFields):
    reading_options = ("columns", "delimiter")
    writing_options = ("columns", "delimiter")

    def check_reading(self, parse: Json) -> None:
        if not parse["columns"]:
            raise ValueError("format csv needs columns")
        _check_delimiter(parse)
        super().check_reading(parse)

    def check_writing(self, encode: Json) -> None:
        _check_delimiter(encode)
        if twice := next((name for name in encode["columns"] if encode["columns"].count(name) > 1), None):
            raise ValueError(f"two columns have the name {twice!r}")

    def check_rows(self, encode: Json, rows: Type) -> None:
        known = dict(rows.fields)
        for name in encode["columns"] or known:
            if name not in known:
                raise ValueError(f"columns: there is no field {name} (there are {', '.join(known)})")
            if known[name].kind in ("struct", "list"):
                words = "a list: explode it" if known[name].item is not None else "an object: flatten it"
                raise ValueError(f"{name} is {words}, or drop it: a cell of csv has one value")

    def writer(self, encode: Json, rows: Type) -> Writer:
        from connect_core.pipeline.formats.csv_writing import CsvWriter

        return to_values(CsvWriter(tuple(encode.get("columns", ())), encode.get("delimiter", ",")).written)


class Pattern(TextFields):
    """`regex` and `grok`: a pattern of the document."""

    reading_options = ("pattern",)

    def check_reading(self, parse: Json) -> None:
        if not parse["pattern"]:
            raise ValueError(f"format {parse['format']} needs pattern")
        check_groups(pattern_of(parse["format"], parse["pattern"]))
        super().check_reading(parse)


class WholeText(PayloadFormat):
    def rows(self, parse: Json) -> Type | None:
        return Type("struct", fields=((TEXT_FORMAT, TEXT),))

    def check_rows(self, encode: Json, rows: Type) -> None:
        if len(rows.fields) > 1 or rows.fields[0][1].kind in ("struct", "list"):
            words = ", ".join(f"{name}: {one}" for name, one in rows.fields)
            raise ValueError(f"text is for records with one field that is a single value; these have {words}")

    def reader(self, parse: Json, lookup: Lookup | None) -> Reader:
        return of_values(_read_texts)

    def writer(self, encode: Json, rows: Type) -> Writer:
        return to_values(_as_texts)


def _check_delimiter(part: Json) -> None:
    if part["delimiter"] in '"\r\n':
        raise ValueError("delimiter cannot be a quotation mark or end a line")


def _names(parse: Json) -> list[str] | None:
    return known_fields(parse["format"], parse.get("pattern", ""), parse.get("columns", ()))


def _read_texts(values: pa.Array) -> Read:
    import pyarrow as pa

    from connect_core.pipeline.parsing import read_texts
    from connect_core.rows.json_reading import Read

    texts, unread = read_texts(values)
    return Read(pa.StructArray.from_arrays([texts], [TEXT_FORMAT]), unread)


def _as_texts(rows: pa.StructArray) -> WrittenRows:
    """Of rows with one field: its text alone."""
    import numpy as np
    import pyarrow as pa

    from connect_core.pipeline.transforms.texts import json_texts
    from connect_core.rows.json_writing import WrittenRows

    texts = json_texts(rows.type.field(0), rows.field(0))
    missing = np.flatnonzero(texts.is_null().to_numpy(zero_copy_only=False)).tolist()
    return WrittenRows(
        texts.drop_null().cast(pa.binary()), [(row, "The field is missing, or has no text") for row in missing]
    )
