"""check, apply, init, options: documents before they are in the ledger, and on their way in."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from connect_core.cli import output, session
from connect_core.cli.columns import Column
from connect_core.cli.output import JsonFlag, WideFlag
from connect_core.errors import ConfigError, Unreachable, WaybillError

if TYPE_CHECKING:
    from connect_core.config import Checked
    from connect_core.ledger import Connector, Ledger
    from connect_core.sdk.values import Json

Paths = Annotated[
    list[Path], typer.Argument(help="Documents (YAML, JSON, properties), or folders of them.", metavar="PATH...")
]


def register(app: typer.Typer) -> None:
    app.command("apply")(apply)
    app.command("check")(check)
    app.command("init")(init)
    app.command("options")(options)


def apply(
    paths: Paths,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would change; write nothing.")] = False,
    why: Annotated[str, typer.Option("--why", help="Kept with the revision.")] = "",
    as_json: JsonFlag = False,
) -> None:
    """Create or change connectors; shows the difference first. All documents in one transaction, or none."""
    from connect_core.config import check_paths
    from connect_core.orchestration import control

    home, settings = session.surroundings()
    known, deleted = _known()
    checked = check_paths(paths, home, settings, {name: one.document for name, one in known.items()})
    _tell_notices(checked)
    if dry_run:
        changes = _changes(checked, known, deleted)
        output.emit(as_json, {"applied": False, "connectors": changes}, lambda: _show_changes(changes, "would be "))
        return
    with session.storing() as opened:
        changes = _changes(checked, *_known_to(opened.ledger))
        if not as_json:
            _show_changes(changes, "")
        documents = {item.document.name: item.data for item in checked}
        applied = opened.ledger.apply_all(documents, who=opened.settings.user, why=why)
        for change in changes:
            connector = applied[change["name"]].connector
            change |= {"uid": connector.uid, "revision": connector.revision}
        control.parse_now(opened.home, opened.settings)
    output.emit(as_json, {"applied": True, "connectors": changes}, lambda: None)


def check(
    paths: Paths,
    probe: Annotated[bool, typer.Option("--probe", help="Ask the servers and look at the paths, too.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Check documents: all faults at once, nothing is written."""
    from connect_core.config import check_paths

    home, settings = session.surroundings()
    checked = check_paths(paths, home, settings, _documents_known())
    probes = {item.document.name: _probe(item, home) for item in checked} if probe else {}
    documents = [
        {
            "name": item.document.name,
            "where": item.where,
            "notices": list(item.notices),
            **({"probe": probes[item.document.name]} if probe else {}),
        }
        for item in checked
    ]
    output.emit(as_json, {"valid": True, "documents": documents}, lambda: _show_checked(documents))
    missing = [one for found in probes.values() for one in found if not one["ok"]]
    if missing:
        raise typer.Exit(Unreachable.exit_code)


def init(
    source: Annotated[str, typer.Argument(help="System to read: file, rocketmq, ...", metavar="SOURCE")],
    sink: Annotated[str, typer.Argument(help="System to write.", metavar="SINK")],
    name: Annotated[str, typer.Option("--name", help="Name of the connector.")] = "",
    as_json: JsonFlag = False,
) -> None:
    """Print a commented document to start from."""
    from connect_core.config.templates import template

    text = template(source, sink, name or f"{source}-to-{sink}")
    output.emit(as_json, {"document": text}, lambda: output.line(text.rstrip("\n")))


def options(
    system: Annotated[str, typer.Argument(help="A system, or `connector` for the document itself.", metavar="SYSTEM")],
    key: Annotated[str, typer.Argument(help="One option of it.", metavar="[KEY]")] = "",
    wide: WideFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Show the options of a system, or everything about one of them."""
    from connect_core.config.option_pages import described

    found = [option for option in described(system) if key in ("", option.name)]
    if not found:
        known = ", ".join(sorted({option.name for option in described(system)}))
        raise ConfigError(f'{system} has no option "{key}"', next_step=f"It has {known}")
    if key and not as_json:
        for option in found:
            output.line(f"{option.name} ({option.role} of {option.system})" if option.role else option.name)
            shown = {**output.plain(option), "examples": ", ".join(option.examples)}
            keys = ("description", "type", "required", "default", "examples")
            output.fields((f"  {key}", shown[key]) for key in keys)
        return
    rows = [(option.role, option.name, option.type, option.default, option.description) for option in found]
    columns = (
        Column("ROLE", 3),
        Column("OPTION", cut="never"),
        Column("TYPE", 4),
        Column("DEFAULT", 2),
        Column("DESCRIPTION", cut="words", least=24),
    )
    output.emit(as_json, {"system": system, "options": found}, lambda: output.table(columns, rows, wide=wide))


# -------------------------------------------------------------------------------------------------------------- apply


ByName = dict[str, "Connector"]


def _known() -> tuple[ByName, ByName]:
    """None of either when there is no ledger yet."""
    if not session.ledger_exists():
        return {}, {}
    with session.reading() as opened:
        return _known_to(opened.ledger)


def _documents_known() -> dict[str, Json]:
    """Of the connectors that there are, by name; a ledger that cannot be asked is told, and has none."""
    try:
        return {name: connector.document for name, connector in _known()[0].items()}
    except WaybillError as error:
        output.notice(f"not compared with the connectors that there are: {error}")
        return {}


def _known_to(ledger: Ledger) -> tuple[ByName, ByName]:
    """By name the connectors that there are, and of the deleted ones that have moved something the last of a name."""
    known = {connector.name: connector for connector in ledger.connectors()}
    gone = [one for one in ledger.connectors(include_deleted=True) if one.deleted_at and ledger.offsets(one.uid)]
    return known, {one.name: one for one in sorted(gone, key=_deleted_at)}


def _deleted_at(connector: Connector) -> datetime:
    return connector.deleted_at or connector.created_at


def _changes(checked: list[Checked], known: ByName, deleted: ByName) -> list[dict[str, Any]]:
    return [_change(item, known.get(item.document.name), deleted.get(item.document.name)) for item in checked]


def _change(item: Checked, old: Connector | None, former: Connector | None) -> dict[str, Any]:
    from connect_core.config import difference

    lines = difference(old.document if old else None, item.data)
    change = "created" if old is None else "changed" if lines else "unchanged"
    told = {"name": item.document.name, "change": change, "difference": lines, "notices": list(item.notices)}
    return told | ({"begins_anew": _begins_anew(item, former)} if former and old is None else {})


def _begins_anew(item: Checked, former: Connector) -> dict[str, Any]:
    """What a name means that another connector had: nothing of that one counts."""
    same_target = former.document.get("sink") == item.data.get("sink")
    return {"former_uid": former.uid, "deleted_at": former.deleted_at, "same_target": same_target}


def _said_of_beginning_anew(anew: dict[str, Any]) -> str:
    where = "into the same target" if anew["same_target"] else "into another target"
    return (
        f"begins anew: a connector of this name was deleted {output.cell(anew['deleted_at'])}, and its offsets are not"
        f" reused. What it has delivered is read and delivered again, {where}, as far as the source still has it"
    )


def _show_changes(changes: list[dict[str, Any]], verb: str) -> None:
    for change in changes:
        output.line(f"{change['name']}: {verb}{change['change']}")
        if "begins_anew" in change:
            output.line(f"  {_said_of_beginning_anew(change['begins_anew'])}")
        for line in change["difference"]:
            output.line(f"  {line}")


def _tell_notices(checked: list[Checked]) -> None:
    for item in checked:
        for text in item.notices:
            output.notice(f"{item.where}: {text}")


def _show_checked(documents: list[dict[str, Any]]) -> None:
    for document in documents:
        output.line(f"{document['where']}: {document['name']} is valid")
        for text in document["notices"]:
            output.line(f"  note: {text}")
        for one in document.get("probe", []):
            output.line(f"  {'ok' if one['ok'] else 'MISSING'}: {one['what']}")


# -------------------------------------------------------------------------------------------------------------- probe


def _probe(item: Checked, home: Path | None) -> list[dict[str, Any]]:
    """What the world says of one document, source first; a system that does not answer is told, not raised."""
    from connect_core.config import load_settings, resolve

    try:
        resolved = resolve(item.document, home, load_settings(home), "0" * 12)
    except WaybillError as error:
        return [{"ok": False, "what": str(error)}]
    from connect_core.cli.probing import probe_side

    return [*probe_side("source", resolved.source), *probe_side("sink", resolved.sink)]
