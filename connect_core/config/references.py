"""References in option values: `${env:NAME}`, `${file:PATH#KEY}`, `${stack:FIELD}`, found, checked, resolved, masked.

`env` and `file` are secrets and are resolved late, by whoever builds a source or a sink from its options (`reveal`, in
the worker too); `stack` says where the local servers are and is resolved by the driver (`resolve_stack`). What `env`
and `file` stand for never goes into a message, a log or the ledger: `reveal` has it remembered, and `masking` masks it,
also in what nobody catches (`uncaught`).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from connect_core.config.uncaught import mask_uncaught
from connect_core.errors import ConfigError
from connect_core.masking import remember
from connect_core.sdk.values import Json
from connect_core.work import Side

REFERENCE = re.compile(r"\$\{([^}]*)\}")
_FORMS = {
    "env": re.compile(r"[A-Za-z_][A-Za-z0-9_]*"),
    "file": re.compile(r"[^#]+(#.+)?", re.DOTALL),
    "stack": re.compile(r"[a-z_]+"),
}
_Place = Literal["secret", "address", "other"]
_ADDRESS_NAME = re.compile(r"hosts?|port|failover|name_servers|path|folder|topics?|filters", re.IGNORECASE)
"""Options that say where something is: errors name it, and whoever mends them needs it."""
_BEFORE_IT, _BEHIND_IT = re.compile(r"//[^/?#]*$"), re.compile(r"[^/?#]*@")
STACK_FORMS = "${stack:name_servers} and ${stack:mqtt_port}"
FORMS = f"${{env:NAME}}, ${{file:PATH#KEY}}, {STACK_FORMS}"

Place = tuple[str | int, ...]


def is_reference(value: object) -> bool:
    """Whether the text holds at least one reference."""
    return isinstance(value, str) and REFERENCE.search(value) is not None


def places(value: Any, place: Place = ()) -> Iterator[tuple[Place, str]]:
    """Every text inside `value` that holds a reference, with its place."""
    if is_reference(value):
        yield place, value
    elif isinstance(value, dict):
        for key, child in value.items():
            yield from places(child, (*place, key))
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from places(child, (*place, index))


def fault_in(text: str) -> str | None:
    """What is wrong with the references in `text`, or None."""
    for found in REFERENCE.finditer(text):
        kind, _, rest = found.group(1).partition(":")
        if kind not in _FORMS:
            return f"{found.group()} is not a reference; write one of {FORMS}"
        if not _FORMS[kind].fullmatch(rest):
            return f"{found.group()} does not have the form of {FORMS}"
    return None


def reveal(options: Json) -> Json:
    """The options with `env` and `file` references replaced. Call it last, and show nobody what it returns.

    Raises ConfigError when a variable is not set or a file has no such key.
    """

    def environment(name: str, place: _Place) -> str:
        value = _environment(name)
        secret = place == "secret" or is_secret_name(name)
        if secret or place != "address" or "@" in value:
            _mask(value, secret=secret)
        return value

    def file(reference: str, _: _Place) -> str:
        value = _file(reference)
        _mask(value, secret=True)
        return value

    revealed: Json = _replaced(options, {"env": environment, "file": file})
    return revealed


def _mask(value: str, *, secret: bool) -> None:
    remember(value, secret=secret)
    mask_uncaught()


def revealed(side: Side) -> Side:
    """The side as `systems.source` and `systems.sink` take it: see `reveal`."""
    return replace(side, options=reveal(side.options))


def resolve_stack(options: Json, lookup: Callable[[str], str]) -> Json:
    """The options with `stack` references replaced by what `lookup` says of a field."""
    resolved: Json = _replaced(options, {"stack": lambda field, _: lookup(field)})
    return resolved


def _replaced(value: Any, by_kind: Mapping[str, Callable[[str, _Place], str]], name: str = "") -> Any:
    """`by_kind` is called with what stands behind the kind, and what stands at that place."""
    if isinstance(value, dict):
        return {key: _replaced(child, by_kind, str(key)) for key, child in value.items()}
    if isinstance(value, list):
        return [_replaced(child, by_kind, name) for child in value]
    if not isinstance(value, str):
        return value

    def one(found: re.Match[str]) -> str:
        kind, _, rest = found.group(1).partition(":")
        return by_kind[kind](rest, _place_of(name, value, found)) if kind in by_kind else found.group()

    return REFERENCE.sub(one, value)


def _place_of(name: str, text: str, found: re.Match[str]) -> _Place:
    if is_secret_name(name) or _signs_in(text, found):
        return "secret"
    return "address" if _ADDRESS_NAME.fullmatch(name) else "other"


def _signs_in(text: str, found: re.Match[str]) -> bool:
    """Whether the reference stands before the host of an address, as `https://user:${env:X}@host/`."""
    return bool(_BEFORE_IT.search(text[: found.start()]) and _BEHIND_IT.match(text[found.end() :]))


def _environment(name: str) -> str:
    try:
        return os.environ[name]
    except KeyError:
        raise ConfigError(
            f"The environment variable {name} is not set",
            where=f"${{env:{name}}}",
            next_step="Set it where workers run",
        ) from None


def _file(reference: str) -> str:
    """`PATH` is the whole file without its last newline, `PATH#KEY` an entry of a JSON object or of key=value lines."""
    path, _, key = reference.partition("#")
    where = f"${{file:{reference}}}"
    try:
        text = Path(path).expanduser().read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            f"A secret's file cannot be read: {error.strerror}",
            where=where,
            next_step="Check its path and its permissions where workers run",
        ) from None
    except UnicodeDecodeError:
        raise ConfigError("A secret's file is not UTF-8 text", where=where, next_step="Save it as UTF-8") from None
    if not key:
        return text.removesuffix("\n")
    entries = _entries(text)
    if key not in entries:
        raise ConfigError(
            "A secret's file has no such key",
            where=where,
            next_step="Add the key as a line key=value, or to its JSON object, or correct the reference",
        )
    return entries[key]


def _entries(text: str) -> dict[str, str]:
    if text.lstrip().startswith("{"):
        try:
            return {str(name): str(value) for name, value in json.loads(text).items()}
        except json.JSONDecodeError:
            return {}
    lines = (line.partition("=") for line in text.splitlines() if not line.lstrip().startswith("#"))
    return {name.strip(): value.strip() for name, sep, value in lines if sep}


# ------------------------------------------------------------------------------------------------------------ display

MASK = "********"
_SECRET_WORDS = (
    r"password|passwd|passphrase|pwd|secret|token|credential|(?:access|private|api|auth)[-_.]?key"
    r"|authorization|cookie|jaas|user[-_.]?info"
)
_SECRET_NAME = re.compile(_SECRET_WORDS, re.IGNORECASE)
_IN_QUERY = re.compile(rf"([?&;][\w.-]*(?:{_SECRET_WORDS})[\w.-]*=)(?!\$\{{)[^&;\s]+", re.IGNORECASE)
"""Behind an address, in its query or among the properties of JDBC."""
_SIGNED_IN = re.compile(r"(?<=//)([^/?#\s@:]*:)(?!\$\{[^}]*\}@)[^/?#\s]+@")
"""An address with a user and a password, which is no reference."""
_SECRET_HEADER = re.compile(r"key|auth|signature", re.IGNORECASE)


def is_secret_name(name: str) -> bool:
    """Whether a key of this name may hold a secret."""
    return _SECRET_NAME.search(name) is not None


def is_secret_header(name: str) -> bool:
    """Whether a header of this name may hold one: more than options do headers have names of their makers' own."""
    return is_secret_name(name) or _SECRET_HEADER.search(name) is not None


def masked(value: Any, name: str = "") -> Any:
    """`value` for display: what stands under a secret's name, or as a secret in an address, is hidden, unless it is a
    reference."""
    if isinstance(value, dict):
        return {key: masked(child, str(key)) for key, child in value.items()}
    if isinstance(value, list):
        return [masked(child, name) for child in value]
    hidden = value is not None and is_secret_name(name) and not _only_reference(value)
    if hidden:
        return MASK
    return masked_text(value) if isinstance(value, str) else value


def masked_text(text: str) -> str:
    """Without passwords in addresses."""
    return _IN_QUERY.sub(rf"\1{MASK}", _SIGNED_IN.sub(rf"\1{MASK}@", text))


def _only_reference(value: object) -> bool:
    return isinstance(value, str) and REFERENCE.fullmatch(value) is not None
