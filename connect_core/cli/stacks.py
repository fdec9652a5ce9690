"""dev up | down | status: the local stack of this home. Loopback only."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from connect_core.cli import output
from connect_core.cli.columns import Column
from connect_core.cli.output import JsonFlag, WideFlag
from connect_core.errors import Unreachable

app = typer.Typer(
    no_args_is_help=True, help="The local stack: RocketMQ, PostgreSQL, engine, Airflow, REST calls, MQTT broker."
)

Parts = Annotated[list[str], typer.Option("--only", help="Only this part; may be given several times.", metavar="PART")]


@app.command()
def up(only: Parts = [], as_json: JsonFlag = False) -> None:  # noqa: B006  typer copies it
    """Start the parts that do not run yet. Creates a home if there is none, and the ledger if PostgreSQL is started.

    Starts every part that ran before. Name the MQTT broker once: `--only mqtt-broker`.
    """
    from connect_core.service import local_stack

    local_stack.up(only, output.notice, lambda told: _show(told, as_json))


@app.command()
def down(only: Parts = [], as_json: JsonFlag = False) -> None:  # noqa: B006
    """Stop the stack; its data stay."""
    from connect_core.service import local_stack

    _show(local_stack.down(only, output.notice), as_json)


@app.command()
def status(wide: WideFlag = False, as_json: JsonFlag = False) -> None:
    """Show the parts with their ports, and check that each answers. Exit code 3 if one is dead or unusable."""
    from connect_core.service import local_stack

    told = local_stack.status()
    _show(told, as_json, wide)
    if any(part["state"] not in ("running", "stopped") for part in told["parts"]):
        raise typer.Exit(Unreachable.exit_code)


def _show(told: dict[str, Any], as_json: bool, wide: bool = False) -> None:
    rows = [
        [part["part"], part["state"], str(part["pid"] or ""), _ports(part["ports"]), part["version"], part["log"]]
        for part in told["parts"]
    ]
    columns = (
        Column("PART", cut="never"),
        Column("STATE"),
        Column("PID", 3),
        Column("PORTS", 2),
        Column("VERSION", 4),
        Column("LOG", 3),
    )
    output.emit(as_json, told, lambda: output.table(columns, rows, wide=wide))


def _ports(ports: dict[str, int]) -> str:
    return ", ".join(f"{name} {port}" for name, port in ports.items())
