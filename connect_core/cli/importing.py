"""import: connectors of another product, taken over."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from connect_core.cli import output
from connect_core.cli.columns import Column
from connect_core.cli.output import JsonFlag, WideFlag
from connect_core.errors import ConfigError

if TYPE_CHECKING:
    from connect_core.service.stored_connectors import StoredConnector

ApplyFlag = Annotated[bool, typer.Option("--apply", help="Create them. Without it, only show what would be.")]
_SHOWN = 4
"""Offsets of a connector in the table; all of them are in the JSON."""

app = typer.Typer(no_args_is_help=True, help="Take over the connectors of another product.")


@app.callback()
def of() -> None:
    """Take over the connectors of another product."""


@app.command("rocketmq-connect")
def rocketmq_connect(
    store: Annotated[
        Path | None, typer.Option("--store", help="The folder of a worker (its storePathRootDir), or a copy.")
    ] = None,
    namesrv: Annotated[
        str, typer.Option("--namesrv", help="Name servers of the cluster that has the topics, HOST:PORT[;HOST:PORT].")
    ] = "",
    config_topic: Annotated[
        str, typer.Option("--config-topic", help="configStoreTopic there; without it connector-config-topic.")
    ] = "",
    position_topic: Annotated[
        str, typer.Option("--position-topic", help="positionStoreTopic there; without it connector-position-topic.")
    ] = "",
    access_key: Annotated[str, typer.Option("--access-key", help="Of the cluster's access control.")] = "",
    secret_key: Annotated[
        str, typer.Option("--secret-key", help="A reference to its secret: ${env:NAME} or ${file:PATH#KEY}.")
    ] = "",
    worker_config: Annotated[
        Path | None,
        typer.Option("--worker-config", help="The file that its worker is started with, which says all that."),
    ] = None,
    apply: ApplyFlag = False,
    wide: WideFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Take over connectors of RocketMQ Connect: configurations, paused or not, and where they were.

    Stop its workers first: what they send after they have last written their positions comes again.
    """
    from connect_core.service.peer_workers import Named, connectors_of, workers_of, workers_of_file

    named = Named(store, namesrv, config_topic, position_topic, access_key, secret_key)
    workers = workers_of_file(worker_config, named) if worker_config else workers_of(named)
    found, lacking = connectors_of(workers)
    _take_over(found, lacking, "RocketMQ Connect", apply=apply, wide=wide, as_json=as_json)


@app.command("kafka-connect")
def kafka_connect(
    url: Annotated[str, typer.Option("--url", help="Its REST API, http://HOST:8083.")] = "",
    auth_file: Annotated[
        Path | None, typer.Option("--auth-file", help="A file that holds user:password, for Basic.")
    ] = None,
    files: Annotated[
        Path | None, typer.Option("--from", help="A file, or a folder of files: what its REST API answers.")
    ] = None,
    apply: ApplyFlag = False,
    wide: WideFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Take over connectors of Kafka Connect: configurations, states, and where sources were, as far as that is known.

    Stop the connectors there first: what they send after they were asked comes again.
    """
    from connect_core.service.kafka_server import KafkaServer
    from connect_core.service.kafka_stored import connectors_at, connectors_in

    if bool(url) == bool(files):
        raise ConfigError("Say where its connectors are: --url, or --from")
    if files and auth_file:
        raise ConfigError("--auth-file means nothing with --from")
    found = connectors_in(files) if files else connectors_at(KafkaServer(url, auth_file))
    _take_over(found, (), "Kafka Connect", apply=apply, wide=wide, as_json=as_json)


def _take_over(
    found: Sequence[StoredConnector], lacking: Sequence[str], product: str, *, apply: bool, wide: bool, as_json: bool
) -> None:
    from connect_core.service.importing import imported, would_import

    told = imported(found, product, output.notice) if apply else would_import(found, product)
    result = {"applied": apply, "connectors": told, "lacking": list(lacking)}
    output.emit(as_json, result, lambda: _show(result, wide))
    if apply and (lacking or any(one["problems"] for one in told)):
        raise typer.Exit(2)


def _show(result: dict[str, Any], wide: bool) -> None:
    told = result["connectors"]
    columns = (Column("CONNECTOR"), Column("CLASS", 3), Column("BECOMES"), Column("OFFSETS", 2))
    rows = [
        [
            one["connector"],
            one["class"].rpartition(".")[2],
            "nothing" if one["problems"] else "as it is" if one["done"] else one["state"],
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
    for one in result["lacking"]:
        output.line(f"lacking: {one}")
    if not result["applied"]:
        output.line("nothing was changed; --apply creates those without a problem")


def _offsets(places: Sequence[dict[str, Any]]) -> str:
    shown = ", ".join(f"{place['partition']}: {place['offset']:,}" for place in places[:_SHOWN])
    return f"{shown}, and {len(places) - _SHOWN} more" if len(places) > _SHOWN else shown
