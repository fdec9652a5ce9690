"""The transforms of RocketMQ Connect, one function each. Pure. It has no predicates."""

from __future__ import annotations

import re
from collections.abc import Mapping

from connect_core.config.peers.case_format import FORMATS, converted
from connect_core.config.peers.kafka import Translation
from connect_core.config.peers.patterns import java_pattern, replaced
from connect_core.config.peers.reading import PeerPart
from connect_core.config.peers.state import Chain, path
from connect_core.pipeline.transforms.paths import written

PACKAGE = "org.apache.rocketmq.connect.transforms."
_FLAGS = {"CASE_INSENSITIVE": re.IGNORECASE, "DOTALL": re.DOTALL, "MULTILINE": re.MULTILINE, "LITERAL": 0}


def _change_case(part: PeerPart, chain: Chain) -> None:
    given, wanted = part.need("from"), part.need("to")
    for option, value in (("from", given), ("to", wanted)):
        if value not in FORMATS:
            raise part.refuse(f"{value!r} is not one of {', '.join(FORMATS)}", option)
    _rename(part, chain, {name: converted(name, given, wanted) for name in chain.fields(part)})


def _rename(part: PeerPart, chain: Chain, names: Mapping[str, str]) -> None:
    changed = {path(name): path(new) for name, new in names.items() if name != new}
    if empty := next((name for name, new in names.items() if not new), None):
        raise part.refuse(f"the field {empty!r} would have no name")
    if changed:
        chain.add(part, {"rename": changed})


def _pattern_rename(part: PeerPart, chain: Chain) -> None:
    pattern, replacement = _field_pattern(part), part.get("field.replacement")
    try:
        _rename(part, chain, {name: replaced(pattern, replacement, name, once=False) for name in chain.fields(part)})
    except ValueError as why:
        raise part.refuse(str(why), getattr(why, "key", "field.replacement").removeprefix(f"{part.prefix}.")) from None


def _field_pattern(part: PeerPart) -> re.Pattern[str]:
    text, flags = part.need("field.pattern"), part.words("field.pattern.flags")
    if unknown := [flag for flag in flags if flag not in _FLAGS]:
        raise part.refuse(f"{', '.join(unknown)}: only {', '.join(_FLAGS)} are kept", "field.pattern.flags")
    try:
        pattern = re.compile(re.escape(text)) if "LITERAL" in flags else java_pattern(text)
    except ValueError as why:
        raise part.refuse(str(why), "field.pattern") from None
    if "." in text and "DOTALL" in flags and "LITERAL" not in flags:
        raise part.refuse("DOTALL changes what . is: write [\\s\\S] for it", "field.pattern.flags")
    return re.compile(pattern.pattern, re.ASCII | sum(_FLAGS[flag] for flag in flags))


def _nested(part: PeerPart, chain: Chain) -> None:
    """It is called as the inner field, whatever `output.field.name` says."""
    outer, inner = part.need("input.outer.field.name"), part.need("input.inner.field.name")
    if part.get("output.field.name") not in ("", inner):
        chain.notice(part, f"the field is called {inner}: RocketMQ Connect does not read output.field.name either")
    if inner in chain.fields(part):
        raise part.refuse(f"there is a field {inner!r} already", "input.inner.field.name")
    chain.add(part, {"copy": {written((outer, inner)): path(inner)}})


def _pattern_filter(part: PeerPart, chain: Chain) -> None:
    text, names = part.need("pattern"), part.words("fields")
    fields = chain.fields(part)
    try:
        pattern = java_pattern(text).pattern
    except ValueError as why:
        raise part.refuse(str(why), "pattern") from None
    if asked := [name for name in names if name in fields and fields[name].kind == "text"]:
        chain.add(part, {"filter_out": {"pattern": pattern, "fields": [path(name) for name in asked]}})
    if others := [name for name in names if name not in asked]:
        chain.notice(part, f"no text fields, and so without effect: {', '.join(others)}")


def _precision(part: PeerPart, chain: Chain) -> None:
    part.need("precision.max")
    chain.notice(part, "accepted without effect: what is written says no precision in its schema")


def _null_value(part: PeerPart, chain: Chain) -> None:
    part.need("field.pattern")
    chain.notice(part, "accepted without effect: RocketMQ Connect returns the value unchanged")


def _null_key(part: PeerPart, chain: Chain) -> None:
    part.need("field.pattern")
    if chain.is_source:
        raise part.refuse(
            "it drops headers as well, which a native document does by name: record: {headers: {a: null}}"
        )
    chain.add(part, {"record": {"key": ""}})


def _routed(part: PeerPart, chain: Chain) -> None:
    raise part.refuse(
        "RocketMQ Connect cannot run it either, and leaves it out: take it out of transforms, or use "
        "org.apache.kafka.connect.transforms.RegexRouter"
    )


CLASSES: Mapping[str, Translation] = {
    "ChangeCase$Value": _change_case,
    "ExtractNestedField$Value": _nested,
    "PatternFilter$Value": _pattern_filter,
    "PatternRename$Value": _pattern_rename,
    "RegexRouter": _routed,
    "SetMaximumPrecision$Value": _precision,
    "SetNull$Key": _null_key,
    "SetNull$Value": _null_value,
}
NOT_KEPT = frozenset({"RegexRouter"})
"""Of these classes there is an answer alone."""


def find(cls: str) -> Translation | None:
    """None for a class that is not RocketMQ Connect's. Raises ValueError for one that is not kept."""
    name = cls.removeprefix(PACKAGE)
    if name == cls:
        return None
    if name.endswith("$Key") and name not in CLASSES and f"{name.removesuffix('$Key')}$Value" in CLASSES:
        raise ValueError("transforms of keys are not kept: change the fields in the value")
    return CLASSES.get(name) or CLASSES.get(name.partition("$")[0])
