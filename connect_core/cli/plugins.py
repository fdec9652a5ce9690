"""plugins: whatever documents may name, and the packages that bring it."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from connect_core.cli import output
from connect_core.cli.columns import Column
from connect_core.cli.installation import installation
from connect_core.cli.output import JsonFlag, WideFlag


def register(app: typer.Typer) -> None:
    app.command("plugins")(plugins)


def plugins(
    name: Annotated[str, typer.Argument(help="One of them, or a class of a peer.", metavar="[NAME]")] = "",
    wide: WideFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """List systems, formats, steps, functions and classes of peers; with NAME everything about one of them.

    One whose package is broken is listed with why. Connectors that do not need it are not harmed.
    """
    found = installation().plugins(name)
    if name and not as_json:
        for one in found:
            _show(one, wide)
        return
    rows = [[one["kind"], one["name"], one["package"], one["version"], one["error"]] for one in found]
    columns = (
        Column("KIND", cut="never"),
        Column("NAME"),
        Column("PACKAGE", 2),
        Column("VERSION", 3, cut="never"),
        Column("ERROR", cut="words", least=24),
    )
    output.emit(as_json, {"plugins": found}, lambda: output.table(columns, rows, wide=wide))


def _show(one: dict[str, Any], wide: bool) -> None:
    output.line(f"{one['kind']} {one['name']}")
    shown = {**one, "classes": ", ".join(one["classes"]), "abilities": ", ".join(one["abilities"])}
    output.fields((f"  {key}", shown[key]) for key in ("title", "package", "version", "classes", "error") if shown[key])
    if one["options"]:
        rows = [
            [each[key] for key in ("name", "type", "default", "unit", "importance", "secret", "doc")]
            for each in one["options"]
        ]
        columns = (
            Column("OPTION", cut="never"),
            Column("TYPE", 3),
            Column("DEFAULT", 4),
            Column("UNIT", 5),
            Column("IMPORTANCE", 6),
            Column("SECRET", 7),
            Column("DOC", cut="words", least=24),
        )
        output.table(columns, rows, wide=wide)
