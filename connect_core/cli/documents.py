"""check, apply, init, options: documents before they are in the ledger, and on their way in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from connect_core.cli import consent, guarantees, output, schema_contracts
from connect_core.cli.columns import Column
from connect_core.cli.consent import Yes
from connect_core.cli.installation import installation
from connect_core.cli.output import JsonFlag, WideFlag
from connect_core.errors import Unreachable

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
    why: Annotated[str, typer.Option("--why", help="Reason, kept with the revision.")] = "",
    infer_again: Annotated[
        bool, typer.Option("--infer-again", help="Find the fields of documents with `fields: infer` again.")
    ] = False,
    yes: Yes = False,
    as_json: JsonFlag = False,
) -> None:
    """Create or change connectors, and show the difference. Applies all documents or none.

    With --infer-again a person is asked before fields change.
    """
    here = installation()
    if dry_run:
        changes = here.would_change(paths, output.notice, infer_again=infer_again)
        output.emit(as_json, {"applied": False, "connectors": changes}, lambda: _show_changes(changes, "would be "))
        return
    agree = consent.agreeing_on_fields(yes)
    changes = here.apply(paths, why=why, say=output.notice, infer_again=infer_again, agree=agree)
    output.emit(as_json, {"applied": True, "connectors": changes}, lambda: _show_changes(changes, ""))


def check(
    paths: Paths,
    probe: Annotated[bool, typer.Option("--probe", help="Also contact the servers and check the paths.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Check documents and their examples: shows all faults at once and writes nothing."""
    checked = installation().check(paths, output.notice, probe=probe)
    output.emit(as_json, {"valid": True, "documents": checked}, lambda: _show_checked(checked))
    if any(not one["ok"] for document in checked for one in document.get("probe", ())):
        raise typer.Exit(Unreachable.exit_code)


def init(
    source: Annotated[str, typer.Argument(help="System to read from: file, rocketmq, ...", metavar="SOURCE")],
    sink: Annotated[str, typer.Argument(help="System to write to.", metavar="SINK")],
    name: Annotated[str, typer.Option("--name", help="Name of the connector.")] = "",
    as_json: JsonFlag = False,
) -> None:
    """Print a commented document to start from."""
    from connect_core.service import documents

    text = documents.example(source, sink, name or f"{source}-to-{sink}")
    output.emit(as_json, {"document": text}, lambda: output.line(text.rstrip("\n")))


def options(
    system: Annotated[str, typer.Argument(help="A system, or `connector` for the document itself.", metavar="SYSTEM")],
    key: Annotated[str, typer.Argument(help="One option of it.", metavar="[KEY]")] = "",
    wide: WideFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Show the options of a system, or everything about one of them."""
    found = installation().options(system, key)
    if key and not as_json:
        for option in found:
            role = f" ({option['role']} of {option['system']})" if option["role"] else ""
            output.line(f"{option['name']}{role}")
            shown = {**option, "examples": ", ".join(option["examples"])}
            keys = ("description", "type", "required", "default", "examples")
            output.fields((f"  {key}", shown[key]) for key in keys)
        return
    rows = [[option[key] for key in ("role", "name", "type", "default", "description")] for option in found]
    columns = (
        Column("ROLE", 3),
        Column("OPTION", cut="never"),
        Column("TYPE", 4),
        Column("DEFAULT", 2),
        Column("DESCRIPTION", cut="words", least=24),
    )
    output.emit(as_json, {"system": system, "options": found}, lambda: output.table(columns, rows, wide=wide))


def _said_of_beginning_anew(anew: dict[str, Any]) -> str:
    where = "into the same target" if anew["same_target"] else "into another target"
    return (
        f"starts over: a connector of this name was deleted {output.cell(anew['deleted_at'])}, and its offsets are not"
        f" reused. Records that it delivered are delivered again, {where}, if the source still has them"
    )


def _show_changes(changes: list[dict[str, Any]], verb: str) -> None:
    for change in changes:
        output.line(f"{change['name']}: {verb}{change['change']}")
        if "begins_anew" in change:
            output.line(f"  {_said_of_beginning_anew(change['begins_anew'])}")
        for line in change["difference"]:
            output.line(f"  {line}")


def _show_checked(documents: list[dict[str, Any]]) -> None:
    for document in documents:
        output.line(f"{document['where']}: {document['name']} is valid")
        for text in document["notices"]:
            output.line(f"  note: {text}")
        if examples := document["examples"]:
            output.line(f"  {output.count(examples, 'example')} {'holds' if examples == 1 else 'hold'}")
        guarantees.show(document["guarantee"], "  ")
        schema_contracts.show(document["schema"], "  ")
        for one in document.get("probe", []):
            output.line(f"  {'ok' if one['ok'] else 'MISSING'}: {one['what']}")
