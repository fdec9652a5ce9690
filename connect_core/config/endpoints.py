"""One end of a document: its options with those of its connection, absolute paths, and what is wrong with them.

`checking` and `resolving` both go through here, so that a document that was checked is read the same way when it runs.
"""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from connect_core.config import addresses, connections, option_models
from connect_core.config.faults import fault_at, model_faults, nearest
from connect_core.config.home import folder_of
from connect_core.config.ledger_url import SQLITE_FILE
from connect_core.config.paths import absolute_path, require_no_ledger
from connect_core.config.references import REFERENCE, fault_in, is_reference, is_secret_header, is_secret_name, places
from connect_core.config.written import Place, Written
from connect_core.errors import ConfigError, Fault
from connect_core.sdk.plugin import ConfiguredEnd, Role
from connect_core.sdk.values import Json
from connect_core.systems.database_urls import file_of, url_of_file


@dataclass(frozen=True)
class Surroundings:
    """What a document is read against. `file` is where it was written, while it is a file. `pinned` is what connections
    said when something was planned with them, by role: it counts where that is another place than now
    (delivery rule 8). `hosts` are the servers that may be named; none of them: all may."""

    home: Path | None
    roots: tuple[Path, ...]
    hosts: tuple[str, ...] = ()
    file: Path | None = None
    pinned: Mapping[str, Json] = field(default_factory=dict)

    def folders(self) -> tuple[Path, ...]:
        """Where connections are looked for."""
        return connections.folders_for(self.file, self.home)


@dataclass(frozen=True)
class End:
    """`own` is what the document keeps, `options` what a run works with, `connection` what of them its connection said;
    None without one. Sound when there are no faults."""

    system: str
    own: Json
    options: Json
    faults: tuple[Fault, ...]
    connection: Json | None = None

    def configured(self) -> ConfiguredEnd:
        """For plugins; only of a sound end."""
        plugin = option_models.plugin(self.system)
        assert plugin is not None
        return ConfiguredEnd(plugin, self.options)


def read_end(
    role: Role,
    system: str,
    own: Json,
    around: Surroundings,
    injected: Mapping[str, Any],
    written: Written,
    *,
    at: Place | None = None,
    pinned_as: str = "",
) -> End:
    """`injected` are the values that no document gives, by name of the field. The end stands at its role in the
    document, and among what is pinned, unless it is said where."""
    place: Place = (*(at or (role,)), system)
    model = option_models.find(role, system)
    if model is None:
        return End(system, own, own, (fault_at(place, _no_such(role, system), written),))
    unknown: list[Fault] = []
    connection: Json | None = None
    try:
        options, own, connection = _with_connection(model, system, own, around, around.pinned.get(pinned_as or role))
    except ConfigError as error:
        unknown.append(fault_at((*place, connections.KEY), _in_one_line(error), written))
        options = {name: value for name, value in own.items() if name != connections.KEY}
    faults = [
        *unknown,
        *(fault_at((*place, *inner), words, written) for inner, words in _reference_faults(model, options)),
    ]
    faults += [
        fault_at((*place, name), f'unknown key "{name}"' + nearest(name, option_models.written_fields(model)), written)
        for name in option_models.injected_fields(model) & options.keys()
    ]
    options, path_faults = _absolute(model, options, around)
    faults += [fault_at((*place, name), message, written) for name, message in path_faults]
    faults += [
        fault_at((*place, *inner), message, written) for inner, message in _address_faults(model, options, around)
    ]
    own = {name: options.get(name, value) if name != connections.KEY else value for name, value in own.items()}
    options = {**options, **{k: v for k, v in injected.items() if k in option_models.injected_fields(model)}}
    skip = {name for name, _ in path_faults}
    faults += _model_faults(model, options, place, written, skip=skip, complete=not unknown)
    return End(system, own, options, tuple(faults), connection)


def _with_connection(
    model: type[BaseModel], system: str, own: Json, around: Surroundings, pinned: Json | None
) -> tuple[Json, Json, Json | None]:
    """The options with the connection's; the document's own, with the connection named so that it is found again when
    the document is not a file any more; and what the connection says."""
    if connections.KEY not in own:
        return own, own, None
    given = {key: value for key, value in own.items() if key != connections.KEY}
    try:
        connection = connections.find(str(own[connections.KEY]), around.folders())
        if connection.system != system:
            raise ConfigError(f'the connection "{connection.name}" is for {connection.system}, not for {system}')
    except ConfigError:
        if pinned is None:
            raise
        return {**pinned, **given}, own, pinned
    lasting = (folder_of(around.home) / "conf" / "connections").resolve()
    name = connection.name if connection.file is None or connection.file.parent == lasting else str(connection.file)
    said = connection.options
    if pinned is not None and not _is_same_place(model, pinned, said):
        said = pinned
    return {**said, **given}, {**own, connections.KEY: name}, said


def _is_same_place(model: type[BaseModel], pinned: Json, now: Json) -> bool:
    """Whether a connection that says something else than it did is still one to the same place: another password or
    certificate is no other target, and what is open must not wait for the old one to come back."""
    changed = {name for name in pinned.keys() | now.keys() if pinned.get(name) != now.get(name)}
    return changed <= option_models.access_fields(model) | set(option_models.policy_fields(model))


def _absolute(model: type[BaseModel], options: Json, around: Surroundings) -> tuple[Json, list[tuple[str, str]]]:
    changed, faults = dict(options), []
    for name, make in _path_makers(model):
        value = options.get(name)
        if not isinstance(value, str) or not value or (is_reference(value) and make is _absolute_path):
            continue
        try:
            changed[name] = make(value, around)
        except ValueError as error:
            faults.append((name, str(error)))
    return changed, faults


def _path_makers(model: type[BaseModel]) -> Iterator[tuple[str, Callable[[str, Surroundings], str]]]:
    yield from ((name, _absolute_path) for name in option_models.path_fields(model))
    yield from ((name, _absolute_url) for name in option_models.database_fields(model))


def _absolute_path(path: str, around: Surroundings) -> str:
    """Raises ValueError for one that may not be named."""
    found = absolute_path(path, around.roots)
    if around.home is not None:
        require_no_ledger(found, around.home / SQLITE_FILE)
    return found


def _absolute_url(url: str, around: Surroundings) -> str:
    """The same of the URL of a database that is a file. A name with signs of a pattern is one name."""
    if is_reference(url):
        raise ValueError("must be written out: it says which file, or which server, is meant")
    path = file_of(url)
    if not path:
        return url
    if glob.has_magic(path):
        raise ValueError("must name one file, without `*`, `?` and `[`")
    return url_of_file(_absolute_path(path, around))


def _address_faults(model: type[BaseModel], options: Json, around: Surroundings) -> Iterator[tuple[Place, str]]:
    for name in option_models.address_fields(model) if around.hosts else ():
        yield from (((name,), wrong) for wrong in addresses.faults_of(options.get(name), around.hosts))


def _model_faults(
    model: type[BaseModel], options: Json, place: Place, written: Written, *, skip: set[str], complete: bool
) -> Iterator[Fault]:
    """What the option model has to say. Values that hold a reference are not judged, nor those of `skip` again; of
    options that are not `complete` only those that are there."""
    try:
        model.model_validate(options)
    except ValidationError as error:
        skipped = {".".join(map(str, (*place, name))) for name in skip}
        told = model_faults(error, model, written, place, complete=complete)
        yield from (fault for fault in told if fault.path not in skipped)


_PLAIN_SECRET = "is a secret in plain text; write a reference: ${env:NAME} or ${file:PATH#KEY}"


def _reference_faults(model: type[BaseModel], options: Json) -> Iterator[tuple[Place, str]]:
    """Broken references, and secrets that stand there in plain text: documents are stored and shown."""
    for inner, text in places(options):
        if message := fault_in(text):
            yield inner, message
    for key, value in options.items():
        if isinstance(value, str) and value and is_secret_name(key) and not REFERENCE.fullmatch(value):
            yield (key,), _PLAIN_SECRET
    for name in option_models.header_fields(model):
        headers = options.get(name)
        for header, value in headers.items() if isinstance(headers, dict) else ():
            if is_secret_header(str(header)) and not is_reference(value):  # one may be a part: Bearer ${env:TOKEN}
                yield (name, str(header)), _PLAIN_SECRET


def _no_such(role: Role, system: str) -> str:
    known = option_models.systems(role)
    other: Role = "sink" if role == "source" else "source"
    if why := option_models.why_broken(system):
        return why
    if system in option_models.systems(other):
        return f'"{system}" is a {other} only; a {role} can be {", ".join(known)}'
    return f'there is no system "{system}"' + nearest(system, known)


def _in_one_line(error: ConfigError) -> str:
    return "; ".join([f"{error.where}: {error.what}" if error.where else error.what, *map(str, error.faults)])
