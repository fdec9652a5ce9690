"""From what was written to a checked document, or to every fault in it at once.

Called by `waybill check` and `apply`, and for a document that comes back from the ledger. Opens no connection and opens
no file but those of connections and schemas; which files match a pattern, and which are one file, it looks up.
References stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from connect_core.config import errors_sinks, flat, option_models
from connect_core.config.changes import unfit_changes
from connect_core.config.compatibility import conflict, schedule_conflict, verification_conflict
from connect_core.config.document import MAX_TASKS, ConnectorDocument
from connect_core.config.document_parts import Endpoint
from connect_core.config.endpoints import End, Surroundings, read_end
from connect_core.config.engines import engine_named
from connect_core.config.errors_sinks import read_errors_sink, unfit_errors_sink, with_errors_sink
from connect_core.config.examples import unmet_examples, with_absolute_paths
from connect_core.config.faults import fault_at, model_faults
from connect_core.config.inferred_fields import with_fields
from connect_core.config.keys import unfit_keys
from connect_core.config.letter_keys import letter_key_faults
from connect_core.config.mask_keys import key_faults
from connect_core.config.named_fields import impossible_names
from connect_core.config.neighbours import (
    Neighbour,
    StreamBeside,
    another_source,
    unfit_files,
    unfit_neighbours,
)
from connect_core.config.registries import unallowed_registries
from connect_core.config.row_types import last_rows, unfit_transforms
from connect_core.config.ruling import advice, unfit_events, unfit_rules
from connect_core.config.schema_files import Unread, with_schemas
from connect_core.config.settings import Settings
from connect_core.config.units import show_count
from connect_core.config.written import Place, Written, WrittenDocuments, read_paths
from connect_core.errors import ConfigError, Fault
from connect_core.rows.types import as_written
from connect_core.sdk.plugin import ROLES, Role
from connect_core.sdk.values import Json

_ANY_UID = "0" * 12


@dataclass(frozen=True)
class Checked:
    """A sound document. `data` is what is stored: the native form with absolute paths. `notices` stop nobody. `flat` is
    what it was translated from, secrets masked; None where it was written as it is."""

    document: ConnectorDocument
    data: Json
    where: str
    notices: tuple[str, ...] = ()
    flat: Json | None = None


@dataclass(frozen=True)
class _Examined:
    """What a document says, and all that is wrong with it. `data` is what would be stored."""

    written: Written
    data: Json
    ends: tuple[End, ...] = ()
    faults: tuple[Fault, ...] = ()
    notices: tuple[str, ...] = ()
    second: End | None = None
    """The target of dead letters beside the ledger."""
    flat: Json | None = None

    def checked(self) -> Checked:
        """Raises ConfigError with every fault."""
        if self.faults:
            raise _faulty(self.written, self.faults)
        document = ConnectorDocument.model_validate(self.data)
        return Checked(document, self.data, self.written.where, (*self.notices, *_advice(document)), self.flat)

    def neighbours(self) -> Iterator[Neighbour]:
        """For the others: one for each target. None as long as its ends are not sound."""
        ends = (*self.ends, self.second) if self.second else self.ends
        if len(self.ends) < len(ROLES) or any(end.faults for end in ends):
            return
        source, sink = self.ends
        name, selects = str(self.data.get("name")), bool(self.data.get("rules") or self.data.get("filter"))
        yield Neighbour(name, self.written, source, sink, selects)
        if self.second:
            yield Neighbour(name, self.written, source, self.second, selects=True, place=errors_sinks.PLACE)


class ExaminedBefore:
    """What was examined a moment ago, for who checks the same documents once more because others have changed: only
    these are examined then. What stands between documents is looked at each time."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, Path | None], tuple[object, Json | None, _Examined]] = {}

    def examined(
        self, written: Written, home: Path | None, settings: Settings, found: Mapping[str, Json] | None = None
    ) -> _Examined:
        name = written.data.get("name") if isinstance(written.data, dict) else None
        inferred = (found or {}).get(str(name))
        return self._kept_or(written, inferred, lambda: _examined(written, home, settings, found=found))

    def standing(self, written: Written, home: Path | None, settings: Settings) -> _Examined:
        """Of a connector that stays as it is: its ends alone."""
        return self._kept_or(written, None, lambda: _with_ends(written, home, settings))

    def _kept_or(self, written: Written, inferred: Json | None, examine: Callable[[], _Examined]) -> _Examined:
        at = written.where, written.file
        data, known, kept = self._kept.get(at, (None, None, None))
        if kept is None or data != written.data or known != inferred:
            kept = examine()
            self._kept[at] = written.data, inferred, kept
        return kept


def check_paths(
    paths: Sequence[Path],
    home: Path | None,
    settings: Settings,
    standing: Mapping[str, Json] | None = None,
) -> list[Checked]:
    """Every document of the files and folders: `check_together`."""
    return check_together(read_paths(paths), home, settings, standing)


def check_together(
    written: WrittenDocuments,
    home: Path | None,
    settings: Settings,
    standing: Mapping[str, Json] | None = None,
    found: Mapping[str, Json] | None = None,
    beside: Sequence[StreamBeside] = (),
    before: ExaminedBefore | None = None,
) -> list[Checked]:
    """All of them, with their examples, beside those of the connectors that there are (`standing`, by name) and the
    streams `beside` their live ones. `found` is what stands for `fields: infer`, by name: without it, what names fields
    is not checked. Raises one ConfigError with the faults of all of them."""
    faults = list(written.faults)
    documents = len(written.documents) + len({fault.path for fault in faults})
    before = before or ExaminedBefore()
    examined = [before.examined(item, home, settings, found) for item in written.documents]
    for item in examined:
        faults += [_in(item.written, fault) for fault in (*item.faults, *_unmet(item, settings))]
    faults += _twins(examined)
    faults += _between(examined, standing or {}, home, settings, beside, before)
    if faults:
        raise ConfigError(
            f"{show_count(len(faults), 'fault')} in {show_count(documents, 'document')}", faults=tuple(faults)
        )
    return [item.checked() for item in examined]


def check(written: Written, home: Path | None, settings: Settings, name: str | None = None) -> Checked:
    """One document without its examples; `name` is for flat documents, which have none (else their file's). Raises
    ConfigError."""
    return _examined(written, home, settings, name).checked()


def check_beside(written: Written, home: Path | None, settings: Settings, standing: Mapping[str, Json]) -> Checked:
    """One document beside those of the connectors that there are, by name. Examples that do not hold are notices: who
    disables a rule at night is not held up by them."""
    examined = _examined(written, home, settings)
    checked = examined.checked()
    if faults := tuple(_between([examined], standing, home, settings)):
        raise ConfigError("The document does not fit the other connectors", faults=faults)
    unmet = tuple(f"{fault.path} does not hold: {fault.message}" for fault in _unmet(examined, settings))
    return replace(checked, notices=(*checked.notices, *unmet))


def taken_files(
    wanted: StreamBeside,
    standing: Mapping[str, Json],
    beside: Sequence[StreamBeside],
    home: Path | None,
    settings: Settings,
) -> Sequence[str]:
    """Why a stream cannot have the target that it wants for itself: the connectors that there are (`standing`, by
    name), or streams `beside` their live ones, write the same file, or read it."""
    live = (Written(data, f"connector {name}") for name, data in standing.items())
    others = [each for one in live for each in _examined(one, home, settings).neighbours()]
    ours = _of_streams([wanted], home, settings)
    return [words for _, _, words in unfit_files(ours, others, _of_streams(beside, home, settings))]


def _of_streams(beside: Sequence[StreamBeside], home: Path | None, settings: Settings) -> list[Neighbour]:
    """Their second target is that of the live stream, which has it."""
    return [
        replace(each, until=one.until())
        for one in beside
        for each in _examined(one.written(), home, settings).neighbours()
        if each.place == ("sink",)
    ]


def _examined(
    written: Written,
    home: Path | None,
    settings: Settings,
    name: str | None = None,
    found: Mapping[str, Json] | None = None,
) -> _Examined:
    if not isinstance(written.data, dict):
        return _Examined(written, {}, faults=(Fault("", "a document is a mapping of keys to values"),))
    notices: list[str] = []
    faults: list[Fault] = []
    given: Json | None = None
    if flat.is_flat(written.data):
        given = flat.hidden(written.data)
        translated = flat.translate(written.data, name or flat.name_for(written))
        notices += translated.notices
        if translated.faults:
            told = (fault_at((fault.path,), fault.message, written) for fault in translated.faults)
            return _Examined(written, {}, faults=tuple(told))
        written = flat.with_lines(translated, written)
    around = Surroundings(home, settings.files_roots, settings.allowed_hosts, written.file)
    try:
        data = with_fields(with_schemas(dict(written.data), around.roots), found or {})
    except Unread as why:
        return _Examined(written, {}, faults=(fault_at(why.place, str(why), written),))
    faults += _document_faults(data, written)
    ends: list[End] = []
    for role in ROLES:
        if end := _end(role, data, around, written):
            faults += end.faults
            data[role] = {end.system: end.own}
            ends.append(end)
    second = _errors_sink(data, around, written)
    if second:
        faults += second.faults
        data = with_errors_sink(data, second)
    faults += _engine_faults(data, home, written)
    faults += [fault_at(*wrong, written) for wrong in unallowed_registries(data, settings.allowed_hosts)]
    if not faults and data.get("examples"):
        data["examples"] = with_absolute_paths(data["examples"], around.roots)
    if len(ends) == len(ROLES) and not faults:
        unfit = list(_conflicts(data, ends[0], ends[1], second, written))
        faults += unfit or _sink_for_its_rows(data, ends[1], around, written)
    faults += [fault_at(*wrong, written) for wrong in _times_conflicts(data, ends)]
    return _Examined(written, data, tuple(ends), tuple(faults), tuple(notices), second, given)


def _with_ends(written: Written, home: Path | None, settings: Settings) -> _Examined:
    """What others meet of a document that was checked when it was stored."""
    around = Surroundings(home, settings.files_roots, settings.allowed_hosts, written.file)
    ends = (_end(role, written.data, around, written) for role in ROLES)
    second = _errors_sink(written.data, around, written)
    return _Examined(written, written.data, tuple(end for end in ends if end), second=second)


def _times_conflicts(data: Json, ends: Sequence[End]) -> Iterator[tuple[Place, str]]:
    if ends and (wrong := schedule_conflict(ends[0], data.get("schedule"))):
        yield wrong
    if len(ends) == len(ROLES) and (wrong := verification_conflict(ends[1], data.get("verify"))):
        yield wrong


def load_document(data: Json, where: str = "ledger") -> ConnectorDocument:
    """A document that was checked when it was stored. Raises ConfigError when this version reads it otherwise."""
    faults = _document_faults(data, Written(data, where))
    if faults:
        raise _faulty(Written(data, where), faults)
    return ConnectorDocument.model_validate(data)


def injected_values(uid: str, name: Any, tasks: Any) -> dict[str, Any]:
    """What runs know and no document gives, by the names that option models have for it."""
    return {"uid": uid, "connector": name, "tasks": tasks}


def _end(role: Role, data: Json, around: Surroundings, written: Written) -> End | None:
    """One end, or None when it has not even its shape: that is the document model's fault to report."""
    if (given := _system_and_options(data.get(role))) is None:
        return None
    return read_end(role, *given, around, _injected(data), written)


def _errors_sink(data: Json, around: Surroundings, written: Written) -> End | None:
    """The second target of dead letters; None also when it has not even its shape."""
    if (given := _system_and_options(errors_sinks.written_in(data))) is None:
        return None
    return read_errors_sink(*given, around, _injected(data), written)


def _system_and_options(value: Any) -> tuple[str, Json] | None:
    if not isinstance(value, dict) or len(value) != 1:
        return None
    system, options = next(iter(value.items()))
    if options is not None and not isinstance(options, dict):
        return None
    return str(system), options or {}


def _injected(data: Json) -> dict[str, Any]:
    tasks = data.get("tasks")
    known = tasks if isinstance(tasks, int) and 0 < tasks <= MAX_TASKS else 1
    return injected_values(_ANY_UID, str(data.get("name", "")), known)


def _sink_for_its_rows(data: Json, sink: End, around: Surroundings, written: Written) -> Sequence[Fault]:
    """What is wrong with its options once the fields of its records are known."""
    rows = last_rows(ConnectorDocument.model_validate(data))
    if rows is None:
        return ()
    known = _injected(data) | {"row_fields": as_written(rows)}
    return read_end("sink", sink.system, sink.own, around, known, written).faults


def _faulty(written: Written, faults: Sequence[Fault]) -> ConfigError:
    return ConfigError("The document is not valid", where=written.where, faults=tuple(faults))


def _document_faults(data: Json, written: Written) -> list[Fault]:
    try:
        ConnectorDocument.model_validate(data)
    except ValidationError as error:
        return list(model_faults(error, ConnectorDocument, written))
    return []


def _conflicts(data: Json, source: End, sink: End, second: End | None, written: Written) -> Iterator[Fault]:
    """Of a document whose parts are sound by themselves."""
    if wrong := conflict(source, sink):
        yield fault_at(*wrong, written)
    if second:
        yield from (fault_at(*wrong, written) for wrong in unfit_errors_sink(source, second))
    document = ConnectorDocument.model_validate(data)
    if unfit := [fault_at(*wrong, written) for wrong in unfit_transforms(document, sink)]:
        yield from unfit
        return
    yield from (fault_at(*wrong, written) for wrong in unfit_changes(document, sink))
    yield from (fault_at(*wrong, written) for wrong in unfit_keys(document, source))
    yield from (fault_at(*wrong, written) for wrong in key_faults(document.transforms))
    yield from (fault_at(*wrong, written) for wrong in unfit_events(document, sink))
    yield from (fault_at(*wrong, written) for wrong in letter_key_faults(document.errors))
    yield from (fault_at(*wrong, written) for wrong in unfit_rules(document.rules, source, sink))
    yield from (fault_at(*wrong, written) for wrong in impossible_names(document, source, sink))


def _engine_faults(data: Json, home: Path | None, written: Written) -> Iterator[Fault]:
    name = data.get("engine")
    if not isinstance(name, str) or not name:
        return
    try:
        engine_named(name, home)
    except ConfigError as error:
        yield fault_at(("engine",), "; ".join([error.what, *map(str, error.faults)]), written)


def _unmet(item: _Examined, settings: Settings) -> Iterator[Fault]:
    """Examples that do not hold, of a document that is sound."""
    if not item.faults and item.data.get("examples"):
        document = ConnectorDocument.model_validate(item.data)
        if document.parse.infers:
            return
        for place, words in unmet_examples(document, item.ends[0], settings.files_roots):
            yield fault_at(place, words, item.written)


def _twins(examined: Sequence[_Examined]) -> Iterator[Fault]:
    first: dict[str, str] = {}
    for item in examined:
        name, where = item.data.get("name"), item.written.where
        if not isinstance(name, str):
            continue
        if name in first:
            yield Fault(f"{where}: name", f'"{name}" is already the name of the document in {first[name]}')
        first.setdefault(name, where)


def _between(
    examined: Sequence[_Examined],
    standing: Mapping[str, Json],
    home: Path | None,
    settings: Settings,
    beside: Sequence[StreamBeside] = (),
    kept: ExaminedBefore | None = None,
) -> Iterator[Fault]:
    """Faults that a document has only beside others: those with it, and the connectors that stay as they are."""
    kept = kept or ExaminedBefore()
    ours = [one for item in examined for one in item.neighbours()]
    names = {str(item.data.get("name")) for item in examined}
    rest = (Written(data, f"connector {name}") for name, data in standing.items() if name not in names)
    others = [each for one in rest for each in kept.standing(one, home, settings).neighbours()]
    for at, place, words in unfit_neighbours(ours, others, _of_streams(beside, home, settings)):
        yield _in(at.written, fault_at(place, words, at.written))
    for item in examined:
        before = standing.get(str(item.data.get("name")))
        if before and (wrong := another_source(item.data, before)):
            yield _in(item.written, fault_at(*wrong, item.written))


def _in(written: Written, fault: Fault) -> Fault:
    """Of one document among several."""
    return Fault(f"{written.where}: {fault.path}".rstrip(": "), fault.message)


def _advice(document: ConnectorDocument) -> Iterator[str]:
    if document.schedule.window:
        yield "schedule.window: a run with a window holds its slot and one of the engine's for that long"
    if document.errors.sink and not document.errors.tolerance:
        yield "errors.sink: nothing goes there while errors.tolerance is none: the first rejection stops its partition"
    yield from advice(document)
    for role in ROLES:
        end: Endpoint = getattr(document, role)
        if plugin := option_models.plugin(end.system):
            yield from plugin.advice(role, end.options)
