"""Consumer groups of a connector from RocketMQ to RocketMQ: where they go on at the target (delivery rule 24).

What the ledger knows of each queue that was read, for `systems.rocketmq.translating`: the receipts around the place
where a group stands tell between which places of the target to look. Used by the command, and at the end of each run of
a connector whose document names groups to keep in step.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from connect_core.config import Resolved, reveal
from connect_core.errors import ConfigError, WaybillError
from connect_core.ledger import Connector, Ledger, SettledRange
from connect_core.sdk.records import Lineage, Partition
from connect_core.sdk.values import LIVE

if TYPE_CHECKING:
    from connect_core.replication.driver.context import RunContext
    from connect_core.systems.rocketmq.translating import Copied, Stretch, Translator


def translator(ledger: Ledger, connector: Connector, resolved: Resolved) -> AbstractContextManager[Translator]:
    """Raises ConfigError for a connector that is not from RocketMQ to RocketMQ, or has not replicated anything."""
    from connect_core.systems.rocketmq.connecting import queue_of
    from connect_core.systems.rocketmq.translating import between

    for role, side in (("source", resolved.source), ("sink", resolved.sink)):
        if side.system != "rocketmq":
            raise ConfigError(f"the {role} of {connector.name} is {side.system}: only RocketMQ has consumer groups")
    partitions = {queue_of(one.partition.key): one.partition for one in ledger.offsets(connector.uid, LIVE)}
    if not partitions:
        raise ConfigError(
            f"{connector.name} has not replicated anything yet", next_step=f"waybill run {connector.name}"
        )
    return between(
        reveal(resolved.source.options),
        reveal(resolved.sink.options),
        sorted(partitions),
        lambda queue, committed: _copied(ledger, connector.uid, partitions[queue], committed),
    )


def keep_in_step(context: RunContext) -> None:
    """After a run has settled: the groups that the document names stand at the target where they stand at the source,
    as far as that moves them forward. What cannot be done is said; it is no failure of the run."""
    wanted = context.resolved.sink.options.get("groups")
    if not wanted or context.stream != LIVE:
        return
    say = context.listener.log
    try:
        with translator(context.ledger, context.connector, context.resolved) as both:
            for group in both.groups(wanted):
                _keep(both, group, context)
    except WaybillError as error:
        say(f"consumer groups were not kept in step (they will be next time): {error}")


def _keep(both: Translator, group: str, context: RunContext) -> None:
    say = context.listener.log
    try:
        moved = both.move_forward(group)
    except WaybillError as error:
        say(f"group {group} was left as it is at the target: {error}")
        return
    if moved:
        repeats = sum(one.repeats for one in moved)
        may = f", and may consume {repeats:,} messages twice" if repeats else ""
        say(f"group {group} was moved on in {len(moved):,} queues of the target{may}")


def _copied(ledger: Ledger, uid: str, partition: Partition, committed: int) -> list[Copied]:
    """By the newest receipt of a queue: the incarnation that it is in, and the queues that its records go to."""
    from connect_core.systems.rocketmq.connecting import queue_of
    from connect_core.systems.rocketmq.routing import queues_for
    from connect_core.systems.rocketmq.translating import Copied

    near = ledger.receipts_near(uid, partition, committed)
    if near is None:
        return []
    newest, around = near
    lineage = Lineage(newest.uid, newest.stream, partition.id, newest.incarnation)
    stretches = [_stretch(one) for one in around]
    return [
        Copied(queue_of(partition.key), lineage, target, stretches, newest.receipt.end)
        for target in queues_for(partition, newest.slot, newest.pins.target)
    ]


def _stretch(one: SettledRange) -> Stretch:
    from connect_core.systems.rocketmq.connecting import queue_of
    from connect_core.systems.rocketmq.translating import Stretch

    where = {queue_of(name): [(begin, end) for begin, end in spans] for name, spans in one.receipt.where.items()}
    return Stretch(one.receipt.begin, one.receipt.end, where)
