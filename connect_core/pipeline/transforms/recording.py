"""Key, tags and headers of records set, column by column. Pure."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connect_core.pipeline.rules import filled
from connect_core.pipeline.transforms.record_steps import END, PAIR, SetRecord
from connect_core.pipeline.transforms.working import Work
from connect_core.sdk.templates import Template


def set_record(step: SetRecord, work: Work) -> None:
    """Templates are filled from the record as it was before the step."""
    columns = dict(zip(work.records.schema.names, work.records.columns, strict=True))
    for name, template in (("key", step.key), ("tags", step.tags)):
        if template is not None:
            columns[name] = _missing_if_empty(_texts(template, work))
    if step.headers:
        columns["headers"] = _headers(step, columns["headers"], work)
    work.records = pa.RecordBatch.from_arrays(list(columns.values()), schema=work.records.schema)


def _texts(template: Template, work: Work) -> pa.Array:
    if template.fixed is not None:
        return pa.repeat(pa.scalar(template.fixed), len(work.rows))
    return filled(template, work.fields, pa.array(np.arange(len(work.rows))))


def _missing_if_empty(texts: pa.Array) -> pa.Array:
    return pc.if_else(pc.equal(texts, ""), pa.scalar(None, texts.type), texts)


def _headers(step: SetRecord, given: pa.Array, work: Work) -> pa.Array:
    """Those of the same name are dropped, however many there are, and the new ones come last."""
    kept = _without([name for name, _ in step.headers], _ended(pc.fill_null(given, b"")))
    parts = [kept]
    for name, template in step.headers:
        if template is not None:
            parts.append(_header(name, _texts(template, work), work))
    return _missing_if_empty(pc.binary_join_element_wise(*parts, b"") if len(parts) > 1 else kept)


def _ended(headers: pa.Array) -> pa.Array:
    """RocketMQ 5 leaves out what ends the last one."""
    open_end = pc.and_(pc.greater(pc.binary_length(headers), 0), pc.invert(pc.ends_with(headers, END)))
    return pc.if_else(open_end, pc.binary_join_element_wise(headers, END.encode(), b""), headers)


def _without(names: list[str], headers: pa.Array) -> pa.Array:
    """A run of them at once: what stands before it is taken by no other."""
    either = "|".join(map(re.escape, names))
    pattern = f"(^|{END})(?:(?:{either}){PAIR}[^{END}]*{END})+"
    return pc.replace_substring_regex(headers, pattern, r"\1")


def _header(name: str, values: pa.Array, work: Work) -> pa.Array:
    """Empty where the template gives nothing."""
    torn = pc.match_substring_regex(values, f"[{PAIR}{END}]")
    if pc.any(torn).as_py():
        work.reject(torn.to_numpy(zero_copy_only=False), f"header {name}: its value holds what separates headers")
    texts = pc.binary_join_element_wise(f"{name}{PAIR}", values, END, "")
    return pc.if_else(pc.equal(values, ""), "", texts).cast(pa.binary())
