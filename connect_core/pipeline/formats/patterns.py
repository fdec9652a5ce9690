"""Patterns of payloads, and which fields formats of texts make. Pure, and light: documents are checked by it.

`regex` and `grok` are one pattern with named groups for RE2, which takes time in proportion to the text, whatever the
pattern: none of a user's can hold up a worker. It has no look-around and no references back. So the patterns of grok
are written here: those of Logstash need an engine that goes back.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, Literal

TEXT_FORMAT: Literal["text"] = "text"
"""All of a payload is one field, which has this name too."""

MAX_PATTERN = 10_000
"""Characters, also of what grok makes."""

_TEXT_IN_QUOTES = r'(?:[^"\\]|\\.)*'
_COMMON = (
    r"^(?P<client>\S+) (?P<ident>\S+) (?P<user>.+?) \[(?P<time>[^\]]+)\] "
    r'"(?P<request>(?P<method>[A-Za-z]+) (?P<path>[^ "]+)(?: (?P<protocol>HTTP/[0-9.]+))?|' + _TEXT_IN_QUOTES + ')" '
    r"(?P<status>[0-9]{3}) (?P<bytes>[0-9]+|-)"
)
_COMBINED = f'{_COMMON} "(?P<referer>{_TEXT_IN_QUOTES})" "(?P<agent>{_TEXT_IN_QUOTES})"'
_LOGS = {"common": f"{_COMMON}$", "combined": f"{_COMBINED}$"}
"""Access logs of Apache (mod_log_config, `common` and `combined`) and nginx (`combined`)."""

_GROUP = re.compile(r"\(\?P?<([^>=!]*)>")
_ESCAPED = re.compile(r"\\.", re.DOTALL)
_GROK = re.compile(r"%\{([^{}]*)\}")
_GROK_NAME = re.compile(r"(\w+)(?::(.*))?", re.DOTALL)
_FIELD = re.compile(r"[A-Za-z_]\w*", re.ASCII)

_PATTERNS = {
    "WORD": r"\b\w+\b",
    "NOTSPACE": r"\S+",
    "SPACE": r"\s*",
    "DATA": r".*?",
    "GREEDYDATA": r".*",
    "QUOTEDSTRING": r'(?:"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\')',
    "INT": r"[+-]?[0-9]+",
    "POSINT": r"\b[1-9][0-9]*\b",
    "NONNEGINT": r"\b[0-9]+\b",
    "NUMBER": r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)",
    "BASE16NUM": r"(?:0[xX])?[0-9A-Fa-f]+",
    "USERNAME": r"[A-Za-z0-9._-]+",
    "UUID": r"[A-Fa-f0-9]{8}-(?:[A-Fa-f0-9]{4}-){3}[A-Fa-f0-9]{12}",
    "MAC": r"(?:[A-Fa-f0-9]{2}[:-]){5}[A-Fa-f0-9]{2}",
    "IPV4": r"(?:(?:25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])\.){3}(?:25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])",
    "IPV6": r"[0-9A-Fa-f]*:[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*(?:%\w+)?",
    "IP": r"(?:%{IPV6}|%{IPV4})",
    "HOSTNAME": r"\b[0-9A-Za-z][0-9A-Za-z-]{0,62}(?:\.[0-9A-Za-z][0-9A-Za-z-]{0,62})*\.?",
    "IPORHOST": r"(?:%{IP}|%{HOSTNAME})",
    "HOSTPORT": r"%{IPORHOST}:%{POSINT}",
    "PATH": r"(?:/[^\s/]*)+",
    "URIPATH": r"(?:/[^\s?#]*)+",
    "URIPATHPARAM": r"%{URIPATH}(?:\?\S*)?",
    "URI": r"[A-Za-z][A-Za-z0-9+.-]*://\S+",
    "LOGLEVEL": r"(?i:trace|debug|info(?:rmation)?|notice|warn(?:ing)?|err(?:or)?|crit(?:ical)?|fatal|severe|alert|"
    r"emerg(?:ency)?)",
    "YEAR": r"(?:[0-9]{2}){1,2}",
    "MONTH": r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*",
    "MONTHNUM": r"(?:0?[1-9]|1[0-2])",
    "MONTHDAY": r"(?:0[1-9]|[12][0-9]|3[01]|[1-9])",
    "TIME": r"(?:2[0-3]|[01]?[0-9]):[0-5][0-9](?::[0-5]?[0-9](?:[.,][0-9]+)?)?",
    "TIMESTAMP_ISO8601": r"%{YEAR}-%{MONTHNUM}-%{MONTHDAY}[T ]%{TIME}(?:Z|[+-][0-9]{2}:?[0-9]{2})?",
    "HTTPDATE": r"%{MONTHDAY}/%{MONTH}/%{YEAR}:%{TIME} %{INT}",
    "SYSLOGTIMESTAMP": r"%{MONTH} +%{MONTHDAY} %{TIME}",
}
"""Names that grok has everywhere, with patterns that RE2 takes. One may name others."""


def pattern_of(kind: str, pattern: str) -> str:
    """The regular expression of a format; empty where it has none. Raises ValueError for what grok cannot read."""
    if kind == "grok":
        return _expanded(pattern)
    return _LOGS.get(kind, pattern)


def known_fields(kind: str, pattern: str, columns: Sequence[str]) -> list[str] | None:
    """What the format makes of a payload; None where the payload says that itself."""
    if kind == "csv":
        return list(columns)
    if kind == TEXT_FORMAT:
        return [TEXT_FORMAT]
    if made := pattern_of(kind, pattern):
        return _GROUP.findall(_ESCAPED.sub("", made))
    return None


def check_pattern(pattern: str) -> Any:
    """Raises ValueError for what is no pattern of RE2. The Arrow type of its groups."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if len(pattern) > MAX_PATTERN:
        raise ValueError(f"pattern must have at most {MAX_PATTERN} characters")
    try:
        return pc.extract_regex(pa.array([], pa.string()), pattern).type
    except pa.ArrowInvalid as error:
        raise ValueError(f"pattern is not one of RE2: {error}") from None


def check_groups(pattern: str) -> None:
    """Raises ValueError for what is no pattern of RE2, or makes no field."""
    if not check_pattern(pattern).num_fields:
        raise ValueError("pattern makes no field: name a group, as (?P<status>[0-9]+)")


def _expanded(pattern: str) -> str:
    while len(pattern) <= MAX_PATTERN and _GROK.search(pattern):
        pattern = _GROK.sub(_meant, pattern)
    return pattern


def _meant(found: re.Match[str]) -> str:
    named = _GROK_NAME.fullmatch(found[1])
    if named is None or named[1] not in _PATTERNS:
        name = named[1] if named else found[1]
        near = get_close_matches(name, _PATTERNS, n=1)
        meant = f"; did you mean {near[0]}?" if near else ""
        raise ValueError(f"grok has no {name!r}{meant} (known: {', '.join(sorted(_PATTERNS))})")
    if named[2] is None:
        return f"(?:{_PATTERNS[named[1]]})"
    if not _FIELD.fullmatch(named[2]):
        words = "a field is a name of letters, digits and _, without a type: conditions read texts as numbers"
        raise ValueError(f"{found[0]} names no field: {words}")
    return f"(?P<{named[2]}>{_PATTERNS[named[1]]})"
