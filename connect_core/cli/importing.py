"""import: connectors of another product, taken over."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from connect_core.cli import output
from connect_core.cli.columns import Column
from connect_core.cli.output import JsonFlag, WideFlag

if TYPE_CHECKING:
    from connect_core.service.stored_connectors import StoredConnector

_SHOWN = 4
"""Offsets of a connector in the table; all of them are in the JSON."""

app = typer.Typer(no_args_is_help=True, help="Take over the connectors of another product.")


@app.callback()
def of() -> None:
    """Take over the connectors of another product."""


@app.command("rocketmq-connect")
def rocketmq_connect(
    store: Annotated[Path, typer.Option("--store", help="The folder of a worker (its storePathRootDir), or a copy.")],
    apply: Annotated[bool, typer.Option("--apply", help="Create them. Without it, only show what would be.")] = False,
    wide: WideFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Take over connectors of RocketMQ Connect: configurations, paused or not, and where their sources were.

    Stop its workers first: what they send after they have last written their positions comes again.
    """
    from connect_core.service.peer_store import connectors_in

    _take_over(connectors_in(store), "RocketMQ Connect", apply=apply, wide=wide, as_json=as_json)


def _take_over(found: Sequence[StoredConnector], product: str, *, apply: bool, wide: bool, as_json: bool) -> None:
    from connect_core.service.importing import imported, would_import

    told = imported(found, product, output.notice) if apply else would_import(found, product)
    output.emit(as_json, {"applied": apply, "connectors": told}, lambda: _show(told, apply, wide))
    if apply and any(one["problems"] for one in told):
        raise typer.Exit(2)


def _show(told: Sequence[dict[str, Any]], apply: bool, wide: bool) -> None:
    columns = (Column("CONNECTOR"), Column("CLASS", 3), Column("BECOMES"), Column("OFFSETS", 2))
    rows = [
        [
            one["connector"],
            one["class"].rpartition(".")[2],
            "nothing" if one["problems"] else one["state"],
            _offsets(one["offsets"]),
        ]
        for one in told
    ]
    output.table(columns, rows, "no connectors", wide=wide)
    for one in told:
        for note in one["notes"]:
            output.line(f"{one['connector']}: {note}")
        for problem in one["problems"]:
            output.line(f"{one['connector']} is left out: {problem}")
    if not apply:
        output.line("nothing was changed; --apply creates those without a problem")


def _offsets(places: Sequence[dict[str, Any]]) -> str:
    shown = ", ".join(f"{place['partition']}: {place['offset']:,}" for place in places[:_SHOWN])
    return f"{shown}, and {len(places) - _SHOWN} more" if len(places) > _SHOWN else shown
