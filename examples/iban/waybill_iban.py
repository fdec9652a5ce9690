"""The transform `python: iban`: numbers of accounts in the field `iban` lose their blanks, and one whose check digits
are wrong rejects its record.
"""

from __future__ import annotations

import re

import pyarrow as pa

from connect_core.sdk.row_functions import Changed, RowFunction

FIELD = "iban"
_FORM = re.compile(r"[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}", re.ASCII)


def _fields(given: pa.Schema) -> pa.Schema:
    if FIELD not in given.names or given.field(FIELD).type != pa.string():
        raise ValueError(f"needs a field {FIELD} of type text")
    return given


def _rows(given: pa.RecordBatch) -> Changed:
    place = given.schema.get_field_index(FIELD)
    numbers = [None if one is None else one.replace(" ", "").upper() for one in given.column(place).to_pylist()]
    wrong = [number is not None and not _is_sound(number) for number in numbers]
    column = pa.array(numbers, pa.string())
    return Changed(given.set_column(place, given.schema.field(place), column), pa.array(wrong, pa.bool_()))


def _is_sound(number: str) -> bool:
    """ISO 13616: country and check digits come last, letters count from 10, and 97 leaves 1."""
    if not _FORM.fullmatch(number):
        return False
    return int("".join(str(int(sign, 36)) for sign in number[4:] + number[:4])) % 97 == 1


IBAN = RowFunction(_fields, _rows, deterministic=True)
