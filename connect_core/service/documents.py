"""Documents before they are in the ledger, and on their way in: check, apply, templates, options."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from connect_core.config import Checked, ExaminedBefore, Written, WrittenDocuments, difference, read_paths
from connect_core.config.inferred_fields import stored_fields
from connect_core.config.schema_contract import schema_contract
from connect_core.errors import ConfigError, WaybillError
from connect_core.service.connectors import by_name
from connect_core.service.deletions import finish_deletions
from connect_core.service.inferred_fields import checked_together
from connect_core.service.json_values import fields_of
from connect_core.service.opened import Say, ledger_exists, reading, storing, surroundings
from connect_core.service.respelled_tables import with_respelled

if TYPE_CHECKING:
    from connect_core.config import StreamBeside
    from connect_core.ledger import Connector, Ledger, WritersSeen
    from connect_core.sdk.values import Json

__all__ = [
    "Written",
    "WrittenDocuments",
    "read_paths",
]

_ByName = dict[str, "Connector"]
Show = Callable[[list["Json"]], None]
_CHECKS = 50
"""So often documents are checked beside what others have stored since the last time. Only the first check is long."""


def would_change(paths: Sequence[Path], say: Say, *, infer_again: bool = False) -> list[Json]:
    """What `apply` would change, a connector each, and the revision that this is judged by (0: there is none). `say` is
    told what a person should know of the documents."""
    return written_would_change(read_paths(paths), say, infer_again=infer_again)


def written_would_change(written: WrittenDocuments, say: Say, *, infer_again: bool = False) -> list[Json]:
    """The same of documents that are no files."""
    known = by_name()
    checked = _numbered(_checked(written, known, infer_again), register=False)
    _say_notices(checked, say)
    return _changes(checked, known, _former(checked, known))


def apply(
    paths: Sequence[Path],
    *,
    why: str = "",
    say: Say,
    infer_again: bool = False,
    agree: Show = lambda _: None,
) -> list[Json]:
    """Creates or changes connectors, all of them in one transaction, or none; makes a home and its ledger when there is
    none. Returns the changes. With `infer_again` fields that were inferred are found
    again; where they are others now, `agree` gets the changes before that, and raises when nobody wants them."""
    return apply_written(read_paths(paths), why, say, infer_again, agree)


def apply_one(
    name: str, data: Json, *, why: str, say: Say, begins: str = "running", made_from: int | None = None
) -> Json:
    """The same for one document, native or flat, that is no file; its name is `name`, whatever it says. Its change. A
    connector that is new has the target state `begins`. `made_from` is the revision that the document was made from, 0
    for one that is to be new: raises Retriable where another one is there."""
    of_caller = None if made_from is None else {name: made_from}
    (change,) = apply_written(_one(name, data), why, say, begins=begins, made_from=of_caller)
    return change


def check_one(name: str, data: Json) -> Checked:
    """Raises ConfigError with what `apply_one` would refuse."""
    (checked,) = _checked(_one(name, data), by_name(), infer_again=False)
    return checked


def _one(name: str, data: Json) -> WrittenDocuments:
    return WrittenDocuments([Written({**data, "name": name}, f"connector {name}")])


def apply_written(
    written: WrittenDocuments,
    why: str,
    say: Say,
    infer_again: bool = False,
    agree: Show = lambda _: None,
    begins: str = "running",
    made_from: Mapping[str, int] | None = None,
) -> list[Json]:
    """As `apply`, of documents that need be no files. `begins` is that of `apply_one`; `made_from` are by name the
    revisions that documents were made from, each as there. Of what others store meanwhile they are checked beside that,
    too: raises WritersChanged where others store without end."""
    from connect_core.ledger import WritersChanged

    agreed: list[Json] = []

    def agree_once(changed: list[Json]) -> None:
        if changed != agreed:
            agree(changed)
            agreed[:] = changed

    attempt = partial(_applied, written, why, say, infer_again, agree_once, begins, made_from or {}, ExaminedBefore())
    for _ in range(_CHECKS - 1):
        with suppress(WritersChanged):
            return attempt()
    return attempt()


def _applied(
    written: WrittenDocuments,
    why: str,
    say: Say,
    infer_again: bool,
    agree: Show,
    begins: str,
    made_from: Mapping[str, int],
    before: ExaminedBefore,
) -> list[Json]:
    from connect_core.orchestration import control

    seen = _writers_seen()
    known = by_name()
    checked = _checked(written, known, infer_again, before)
    changes = _changes(checked, known, _former(checked, known))
    if changed := [one for one in changes if _finds_others(one["name"], checked, known)]:
        agree(changed)
    checked = _numbered(checked, register=True)
    _say_notices(checked, say)
    finish_deletions([one["name"] for one in changes if one["change"] == "created"], say)
    with storing() as opened:
        known = {connector.name: connector for connector in opened.ledger.connectors()}
        changes = _changes(checked, known, _former_in(opened.ledger, checked, known))
        documents = {item.document.name: item.data for item in checked}
        of_callers = {name: revision for name, revision in made_from.items() if name in documents}
        flat = {item.document.name: item.flat for item in checked if item.flat is not None}
        applied = opened.ledger.apply_all(
            documents,
            who=opened.settings.user,
            why=why,
            made_from=of_callers,
            flat=flat,
            begins=begins,
            seen=seen,
        )
        for change in changes:
            connector = applied[change["name"]].connector
            change |= {"uid": connector.uid, "revision": connector.revision}
        control.parse_now(opened.home, opened.settings)
    return changes


def check(paths: Sequence[Path], say: Say, *, probe: bool = False) -> list[Json]:
    """Raises ConfigError with all faults at once; writes nothing. With `probe` each end is asked as well, and a source
    for the fields that `apply` would infer. Of a document without a fault all `examples` hold, so many."""
    return check_written(read_paths(paths), say, probe=probe)


def check_written(written: WrittenDocuments, say: Say, *, probe: bool = False) -> list[Json]:
    """The same of documents that are no files."""
    from connect_core.service import guarantees, probing

    home, settings = surroundings()
    standing = documents_known(say)
    beside = _beside() if standing else ()
    checked = checked_together(written, home, settings, standing, looks=probe, beside=beside)
    checked = with_respelled(checked, standing)
    return [
        {
            "name": item.document.name,
            "where": item.where,
            "notices": list(item.notices),
            "examples": len(item.document.examples),
            "schema": schema_contract(item.document),
            "guarantee": guarantees.promised(item.document),
            **({"probe": probing.probe(item.document, home)} if probe else {}),
        }
        for item in checked
    ]


def example(source: str, sink: str, name: str) -> str:
    """A commented document to start from, in YAML."""
    from connect_core.config.templates import template

    return template(source, sink, name)


def options(system: str, key: str = "") -> list[Json]:
    """The options of a system, or of `connector` for the document itself; with `key` the one of that name, once for
    each end that has it."""
    from connect_core.config.option_pages import described

    known = described(system)
    found = [option for option in known if key in ("", option.name)]
    if not found:
        names = ", ".join(sorted({option.name for option in known}))
        raise ConfigError(f'{system} has no option "{key}"', next_step=f"It has {names}")
    return [fields_of(option) for option in found]


def _checked(
    written: WrittenDocuments, known: _ByName, infer_again: bool, before: ExaminedBefore | None = None
) -> list[Checked]:
    home, settings = surroundings()
    standing = {name: one.document for name, one in known.items()}
    beside = _beside() if standing else ()
    checked = checked_together(written, home, settings, standing, again=infer_again, beside=beside, before=before)
    return with_respelled(checked, standing)


def _numbered(checked: list[Checked], *, register: bool) -> list[Checked]:
    if not any(item.document.encode.registry for item in checked):
        return checked
    from connect_core.replication.driver.schema_ids import with_schema_ids

    return with_schema_ids(checked, register=register)


def _say_notices(checked: Sequence[Checked], say: Say) -> None:
    for item in checked:
        for text in item.notices:
            say(f"{item.where}: {text}")


def _finds_others(name: str, checked: Sequence[Checked], known: _ByName) -> bool:
    """Whether a connector whose fields were inferred has others now that are inferred as well."""
    before = stored_fields(known[name].document) if name in known else None
    now = next(stored_fields(item.data) for item in checked if item.document.name == name)
    return before is not None and now is not None and before != now


def _writers_seen() -> WritersSeen:
    from connect_core.ledger import WritersSeen

    if not ledger_exists():
        return WritersSeen()
    with reading() as opened:
        return opened.ledger.writers_seen()


def documents_known(say: Say) -> dict[str, Json]:
    """Of the connectors that there are, by name; a ledger that cannot be asked is told, and has none."""
    try:
        return {name: connector.document for name, connector in by_name().items()}
    except WaybillError as error:
        say(f"not compared with the existing connectors: {error}")
        return {}


def _beside() -> list[StreamBeside]:
    from connect_core.replication.backfill.targets import targets_beside  # brings the driver; a list does without

    with reading() as opened:
        return targets_beside(opened.ledger)


def _former(checked: Sequence[Checked], known: _ByName) -> _ByName:
    """None when there is no ledger yet."""
    if not ledger_exists():
        return {}
    with reading() as opened:
        return _former_in(opened.ledger, checked, known)


def _former_in(ledger: Ledger, checked: Sequence[Checked], known: _ByName) -> _ByName:
    """Of the documents that are new by name the last deleted connector that has moved something."""
    new = {item.document.name for item in checked} - known.keys()
    gone = ledger.deleted_connectors(new) if new else []
    return {one.name: one for one in gone if ledger.offsets(one.uid)}


def _changes(checked: Sequence[Checked], known: _ByName, deleted: _ByName) -> list[Json]:
    return [_change(item, known.get(item.document.name), deleted.get(item.document.name)) for item in checked]


def _change(item: Checked, old: Connector | None, former: Connector | None) -> Json:
    lines = difference(old.document if old else None, item.data)
    change = "created" if old is None else "changed" if lines else "unchanged"
    told: Json = {"name": item.document.name, "change": change, "difference": lines, "notices": list(item.notices)}
    told["made_from"] = old.revision if old else 0
    return told | ({"begins_anew": _begins_anew(item, former)} if former and old is None else {})


def _begins_anew(item: Checked, former: Connector) -> Json:
    """What a name means that another connector had: nothing of that one counts."""
    same_target = former.document.get("sink") == item.data.get("sink")
    return {"former_uid": former.uid, "deleted_at": former.deleted_at, "same_target": same_target}
