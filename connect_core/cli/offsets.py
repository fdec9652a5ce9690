"""offsets show | set | undo | history: where reading goes on, and moving it by hand.

A change takes the lease of the task that has the partition, as a run would: it waits for nobody who is alive.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from connect_core.cli import completing, output, session
from connect_core.cli.columns import Column
from connect_core.cli.consent import Yes, agreed, require_unmoved
from connect_core.cli.history import Stream, of_stream
from connect_core.cli.output import JsonFlag, WideFlag
from connect_core.errors import ConfigError

if TYPE_CHECKING:
    from connect_core.cli.session import Session
    from connect_core.ledger import Connector, Lease, Repeats
    from connect_core.planning import Assignment
    from connect_core.sdk.records import Partition
    from connect_core.sdk.values import Floor, Position

app = typer.Typer(no_args_is_help=True, help="Where reading goes on, and moving it by hand.")

Name = Annotated[
    str, typer.Argument(help="Name of the connector.", metavar="NAME", autocompletion=completing.connectors)
]
PartitionKey = Annotated[
    str,
    typer.Argument(
        help="Partition, as `offsets show` names it.", metavar="PARTITION", autocompletion=completing.partitions
    ),
]


@app.command()
def show(name: Name, stream: Stream = "live", wide: WideFlag = False, as_json: JsonFlag = False) -> None:
    """The committed position of each partition, of the live stream unless told."""
    with session.reading() as opened:
        connector = opened.ledger.connector(name)
        found = [
            {
                "stream": offset.stream,
                "partition": offset.partition.key,
                "incarnation": offset.position.incarnation,
                "offset": offset.position.offset,
                "changed_at": offset.changed_at,
            }
            for offset in opened.ledger.offsets(connector.uid, of_stream(stream))
        ]
    rows = [list(offset.values()) for offset in found]
    columns = (
        Column("STREAM", 3),
        Column("PARTITION", least=16),
        Column("INCARNATION", 4),
        Column("OFFSET"),
        Column("CHANGED AT", 2),
    )
    told = {"connector": name, "offsets": found}
    output.emit(as_json, told, lambda: output.table(columns, rows, "nothing is committed yet", wide=wide))


@app.command("set")
def set_(
    name: Name,
    partition: PartitionKey,
    offset: Annotated[int, typer.Argument(min=0, help="The position to read next.", metavar="OFFSET")],
    why: Annotated[str, typer.Option("--why", help="Kept with the change.")] = "",
    abandon: Annotated[
        bool, typer.Option("--abandon", help="Close a range that is open without knowing what was delivered of it.")
    ] = False,
    yes: Yes = False,
    as_json: JsonFlag = False,
) -> None:
    """Move the committed position. Back: records are delivered again, and it asks first. Forward: records are left
    out. To where a record begins, within what the source has now; or to where it stands, which moves nothing."""
    from connect_core.sdk.values import LIVE

    with session.working() as (opened, home):
        connector = opened.ledger.connector(name)
        assignment = _assignment(opened, connector)
        part = _partition(assignment, partition)
        before = opened.ledger.positions(connector.uid, LIVE, [part])[part]
        wanted = _placed(opened, connector, part, before, offset)
        floors, unseen = _floors_left(opened, connector, part) if abandon else ([], 0)
        repeats = agreed(opened, connector, part, before, wanted, yes=yes, unseen=unseen)
        with _leases(opened, home, connector, assignment, part) as leases:
            require_unmoved(opened, connector, part, before)
            who = opened.settings.user
            opened.ledger.set_offset(
                leases, connector.uid, LIVE, part, wanted, who=who, why=why, abandon=abandon, floors=floors
            )
    _told(name, partition, before, wanted, repeats, as_json)


@app.command()
def undo(name: Name, partition: PartitionKey, yes: Yes = False, as_json: JsonFlag = False) -> None:
    """Take back the last change that a person made to a partition's position. Asks first when records are delivered
    again by it, or runs have built on the change."""
    from connect_core.sdk.values import LIVE

    with session.working() as (opened, home):
        connector = opened.ledger.connector(name)
        assignment = _assignment(opened, connector)
        part = _partition(assignment, partition)
        before = opened.ledger.positions(connector.uid, LIVE, [part])[part]
        change = opened.ledger.last_change(connector.uid, LIVE, part)
        to = change.before if change else before
        repeats = agreed(opened, connector, part, before, to, yes=yes, undone=change)
        with _leases(opened, home, connector, assignment, part) as leases:
            require_unmoved(opened, connector, part, before)
            after = opened.ledger.undo_offset(leases, connector.uid, LIVE, part, who=opened.settings.user)
    _told(name, partition, before, after, repeats, as_json)


@app.command()
def history(
    name: Name,
    partition: Annotated[str, typer.Option("--partition", help="Only this partition.")] = "",
    stream: Stream = "live",
    last: Annotated[int, typer.Option("--last", min=1, max=100_000, help="How many, the newest.")] = 50,
    wide: WideFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Every move of the committed positions, the newest first: settled ranges, and what people changed."""
    from connect_core.sdk.records import Partition

    with session.reading() as opened:
        connector = opened.ledger.connector(name)
        steps = opened.ledger.offset_history(
            connector.uid, Partition(partition) if partition else None, last, of_stream(stream)
        )
    newest_first = steps[::-1]
    told = [
        {
            "at": step.at,
            "kind": step.kind,
            "stream": step.stream,
            "partition": step.partition.key,
            "before": _plain(step.before),
            "after": _plain(step.after),
            "run": step.run_id,
            "range": step.range_id,
            "who": step.who,
            "why": step.why,
        }
        for step in newest_first
    ]
    rows = [
        [s.at, s.kind, s.partition.key, _offset(s.before), _offset(s.after), s.run_id or s.who, s.why]
        for s in newest_first
    ]
    columns = (
        Column("AT", 2),
        Column("KIND"),
        Column("PARTITION"),
        Column("BEFORE"),
        Column("AFTER"),
        Column("BY", 3),
        Column("WHY", 4, cut="end"),
    )
    shown = {"connector": name, "history": told}
    output.emit(as_json, shown, lambda: output.table(columns, rows, "no history", wide=wide))


# ------------------------------------------------------------------------------------------------------------- changes


def _assignment(opened: Session, connector: Connector) -> Assignment:
    """Who has which partition. A connector that never ran is asked for its partitions now."""
    assignment = opened.ledger.assignment(connector.uid)
    if assignment.version:
        return assignment
    from connect_core import systems
    from connect_core.config import revealed

    resolved = opened.resolved(connector)
    partitions = systems.source(revealed(resolved.source)).partitions([])
    return opened.ledger.assign(connector.uid, partitions, resolved.tasks, resolved.assignment)


def _partition(assignment: Assignment, key: str) -> Partition:
    from connect_core.config.faults import nearest

    known = {partition.key: partition for partition in assignment.shares}
    if key not in known:
        raise ConfigError(f'there is no partition "{key}"' + nearest(key, known))
    return known[key]


def _placed(
    opened: Session, connector: Connector, partition: Partition, before: Position | None, offset: int
) -> Position:
    """Raises ConfigError when reading cannot go on there."""
    from connect_core import systems
    from connect_core.config import revealed
    from connect_core.replication.driver.offset_checks import checked_position

    with ExitStack() as resources:
        source = systems.source(revealed(opened.resolved(connector).source), resources)
        return checked_position(source, partition, before, offset, f"connector {connector.name}")


def _floors_left(opened: Session, connector: Connector, partition: Partition) -> tuple[list[Floor], int]:
    """Where the target of a range that is given up is looked through from then on; and how many messages it has deleted
    before that, which nobody has looked at."""
    from connect_core import systems
    from connect_core.config import revealed
    from connect_core.replication.driver.offset_checks import floors_left
    from connect_core.sdk.values import LIVE

    with ExitStack() as resources:
        if not opened.ledger.open_ranges(connector.uid, LIVE, [partition]):
            return [], 0
        sink = systems.sink(revealed(opened.resolved(connector).sink), resources)
        known = {
            one.target: one for one in opened.ledger.floors(connector.uid, LIVE) if one.partition_id == partition.id
        }
        left = floors_left(sink, known.values())
        return left, sum(one.position - known[one.target].position for one in left)


@contextmanager
def _leases(
    opened: Session, home: Path, connector: Connector, assignment: Assignment, partition: Partition
) -> Iterator[list[Lease]]:
    from connect_core.ledger import task_lease_id
    from connect_core.replication.driver.leases import LeaseRequest, acquire
    from connect_core.replication.driver.prepare import holder, times
    from connect_core.sdk.values import LIVE

    task = assignment.shares[partition].task
    lease_id = task_lease_id(connector.uid, LIVE, assignment.version, task)
    held = acquire(
        opened.ledger,
        [LeaseRequest(lease_id, connector.uid, LIVE, assignment.version)],
        holder=holder(),
        home=home,
        times=times(opened.settings),
        say=output.notice,
    )
    try:
        yield held.leases
    finally:
        held.release()


def _told(
    name: str, partition: str, before: Position | None, after: Position | None, repeats: Repeats, as_json: bool
) -> None:
    told = {"connector": name, "partition": partition, "before": _plain(before), "after": _plain(after)}
    told["repeats"] = vars(repeats)
    text = f"{name}: {partition}: {output.cell(_offset(before))} -> {output.cell(_offset(after))}"
    output.emit(as_json, told, lambda: output.line(text))


def _plain(position: Position | None) -> dict[str, Any] | None:
    return {"incarnation": position.incarnation, "offset": position.offset} if position else None


def _offset(position: Position | None) -> int | None:
    return position.offset if position else None
