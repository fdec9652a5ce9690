"""verify: the target read again, compared with the receipts; and what differs sent again, on request."""

from __future__ import annotations

import sys
from functools import partial
from typing import Annotated, Any

import typer

from connect_core.cli import completing, output
from connect_core.cli.columns import Column
from connect_core.cli.consent import Yes
from connect_core.cli.installation import installation, server_named
from connect_core.cli.output import JsonFlag, WideFlag
from connect_core.cli.progress import listening
from connect_core.cli.runs import EngineName, duration
from connect_core.errors import ConfigError, DataError
from connect_core.service.opened import reading, working


def _percentage(text: str) -> float:
    from connect_core.service.durations import parse_share

    try:
        return parse_share(text)
    except ValueError as fault:
        raise typer.BadParameter(str(fault)) from None


def register(app: typer.Typer) -> None:
    app.command("verify")(verify)


def verify(
    name: Annotated[
        str, typer.Argument(help="Name of the connector.", metavar="NAME", autocompletion=completing.connectors)
    ],
    run: Annotated[str, typer.Option("--run", help="Only what this run has settled.")] = "",
    since: Annotated[
        float | None,
        typer.Option("--since", parser=duration, metavar="TIME", help='Only what was settled within it, as "2h".'),
    ] = None,
    stream: Annotated[
        str, typer.Option("--stream", help="live, all, or a stream as `backfills list` shows it.")
    ] = "live",
    share: Annotated[
        float | None,
        typer.Option(
            "--share", parser=_percentage, metavar="PERCENT", help='Only so much of that, as "5%", by chance.'
        ),
    ] = None,
    repair: Annotated[
        bool,
        typer.Option("--repair", help="Send the ranges that differ again, in a backfill, and verify them once more."),
    ] = False,
    yes: Yes = False,
    engine: EngineName = "",
    wide: WideFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Read the target again, and compare it with the receipts, range by range. Exit code 5 when it differs.

    Nothing is written, but by --repair. What a target has deleted by itself (GONE) is listed, and is no fault.
    """
    here, listens = installation(), partial(listening, as_json)

    def verified() -> dict[str, Any]:
        return here.verified(name, run=run, since_s=since, stream=stream, share=share or 1.0, listening=listens)

    if repair and server_named().url:
        raise ConfigError(
            "--repair is not there for another host: its server has no such request",
            next_step="Give it on the host of the server, without --server",
        )
    if share and repair:
        raise ConfigError("--share chooses by chance, and --repair looks twice", next_step="Leave one of them out")
    told = verified()
    if repair and told["differs"]:
        _repair(told, yes, engine)
        told = verified()
    output.emit(as_json, told, lambda: _show(told, wide))
    if told["differs"]:
        raise typer.Exit(DataError.exit_code)


def _repair(told: dict[str, Any], yes: bool, engine: str) -> None:
    """What is there still of these ranges is there twice then: so a person is asked. Raises ConfigError where nobody
    can be asked, Abort when they say no."""
    from connect_core.service import backfill_runs, verifying
    from connect_core.service.runs import How

    with reading() as looked_at:
        verifying.demand_no_repair_left(looked_at, told["connector"])
    name, differing = told["connector"], _can_be_sent_again(told)
    if not differing:
        raise ConfigError(
            _why_not(told), where=f"connector {name}", next_step="Nothing was sent. Restore the target from elsewhere"
        )
    records = output.count(sum(one["records"] for one in differing), "record")
    sentence = (
        f"{output.count(len(differing), 'range')} with {records} will be sent again, beside what is there of them"
    )
    if not yes and not sys.stdin.isatty():
        raise ConfigError(sentence, where=f"connector {name}", next_step="Nothing was sent. Add --yes to confirm")
    output.notice(f"{name}: {sentence}")
    if not yes:
        typer.confirm("Send them?", abort=True, err=True)
    ranges = tuple(f"{one['partition']}:{one['begin']}-{one['end']}" for one in differing)
    request = backfill_runs.Request(ranges=ranges, why=verifying.REPAIR)
    with working() as opened:
        backfill_runs.begin(opened, name, request, How(partial(listening, True), output.notice, engine))


def _why_not(told: dict[str, Any]) -> str:
    if all(one["in_target"] for one in _differing(told)):
        return "The source has other records under the offsets of the ranges that differ: it was created again since"
    return (
        "A backfill would send what differs elsewhere: a file can have one writer only, or the document names another"
        " target, or other rules, since"
    )


def _can_be_sent_again(told: dict[str, Any]) -> list[dict[str, Any]]:
    return [one for one in _differing(told) if one["in_source"] and one["in_target"]]


def _differing(told: dict[str, Any]) -> list[dict[str, Any]]:
    return [one for one in told["others"] if one["verdict"] == "differs"]


def _show(told: dict[str, Any], wide: bool) -> None:
    from connect_core.service import verifying

    name = told["connector"]
    if not told["ranges"]:
        output.line(f"{name}: no receipts")
        return
    output.line(verifying.words(told))
    if not told["others"]:
        return
    keys = ("range", "partition", "begin", "end", "verdict", "what", "place")
    columns = (
        Column("RANGE", 4),
        Column("PARTITION", least=16),
        Column("BEGIN"),
        Column("END"),
        Column("VERDICT"),
        Column("WHAT", cut="end"),
        Column("PLACE", 2, cut="end"),
    )
    output.line("")
    output.table(columns, [[one[key] for key in keys] for one in told["others"]], "", wide=wide)
    again = [one for one in _differing(told) if one["in_source"]]
    more = f" (and {len(again) - 1} more)" if len(again) > 1 else ""
    for one in again[:1]:
        there = "beside what is there" if one["in_target"] else "to another target"
        every = "; all of them: --repair" if _can_be_sent_again(told) else ""
        output.notice(
            f"Nothing that was settled is sent again by itself. To send a stretch again, {there}:"
            f" waybill backfill {name} --range '{one['partition']}:{one['begin']}-{one['end']}'{more}{every}"
        )
