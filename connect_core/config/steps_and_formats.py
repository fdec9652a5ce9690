"""Which steps and formats documents may name, and their options: of ours keys of `parse` and `encode`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, get_args

from connect_core.config.option_pages import DOCUMENT, Option, described, of_model
from connect_core.packages import Brought
from connect_core.pipeline.formats.known import FORMATS, Format, WrittenFormat
from connect_core.pipeline.formats.package_format import row_format
from connect_core.pipeline.transforms.steps import STEPS

__all__ = ["FORMATS_READ", "FORMATS_WRITTEN", "STEPS", "brought_format", "format_options"]

FORMATS_READ: tuple[str, ...] = tuple(name for name in get_args(Format) if name != "none")
FORMATS_WRITTEN: tuple[str, ...] = tuple(name for name in get_args(WrittenFormat) if name != "none")


def format_options(name: str) -> Iterator[Option]:
    form = FORMATS[name]
    keys = {f"parse.{one}" for one in form.reading_options} | {f"encode.{one}" for one in form.writing_options}
    for option in described(DOCUMENT):
        if ".".join(option.name.replace("[]", "").split(".")[:2]) in keys:
            yield option


class BroughtFormat(NamedTuple):
    title: str
    options: list[Option]


def brought_format(one: Brought) -> BroughtFormat:
    """Of a package. Raises ContractBroken."""
    if one.name in FORMATS:
        raise one.broken(f"{one.name} is a format of Waybill itself; it needs another name")
    found = row_format(one)
    ways = " and ".join(words for way, words in (("read", "read"), ("write", "written")) if getattr(found, way))
    return BroughtFormat(f"{found.title}, {ways}", of_model(found.options, one.name))
