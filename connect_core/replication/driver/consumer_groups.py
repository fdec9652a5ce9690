"""Consumer groups of a connector between two ends of one system: where they go on at the target (delivery rule 24).

What the ledger knows of each partition that was read, for the plugin of the system: the receipts around the place where
a group stands tell between which places of the target to look. Used by the command, and at the end of each run of a
connector whose document names groups to keep in step.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from connect_core.config import Resolved, reveal
from connect_core.errors import ConfigError, WaybillError
from connect_core.ledger import Connector, Ledger
from connect_core.sdk.groups import ConsumerGroups, GroupTranslator, Replicated, SettledStretch
from connect_core.sdk.records import Lineage, Partition
from connect_core.sdk.values import LIVE
from connect_core.systems import SYSTEMS

if TYPE_CHECKING:
    from connect_core.replication.driver.context import RunContext


def translator(ledger: Ledger, connector: Connector, resolved: Resolved) -> AbstractContextManager[GroupTranslator]:
    """Raises ConfigError for a connector that is not between two ends with the same kind of groups, or has not
    replicated anything."""
    groups = _groups(connector, resolved)
    partitions = [one.partition for one in ledger.offsets(connector.uid, LIVE)]
    if not partitions:
        raise ConfigError(
            f"{connector.name} has not replicated anything yet", next_step=f"Run `waybill run {connector.name}`"
        )
    return groups.between(
        reveal(resolved.source.options),
        reveal(resolved.sink.options),
        partitions,
        lambda partition, offset: _replicated(ledger, connector.uid, partition, offset),
    )


def _groups(connector: Connector, resolved: Resolved) -> ConsumerGroups:
    able = {name: plugin.groups for name, plugin in SYSTEMS.items() if plugin.groups}
    for role, side in (("source", resolved.source), ("sink", resolved.sink)):
        if side.system not in able:
            products = " and ".join(one.product for one in able.values())
            raise ConfigError(f"The {role} of {connector.name} is {side.system}: only {products} has consumer groups")
    if resolved.source.system != resolved.sink.system:
        raise ConfigError(f"The two ends of {connector.name} have consumer groups of different kinds")
    return able[resolved.sink.system]


def keep_in_step(context: RunContext) -> None:
    """After a run has settled: the groups that the document names stand at the target where they stand at the source,
    as far as that moves them forward. What cannot be done is said; it is no failure of the run."""
    sink = context.resolved.sink
    plugin = SYSTEMS.get(sink.system)
    wanted = plugin.groups.in_step(sink.options) if plugin and plugin.groups else ()
    if not wanted or context.stream != LIVE:
        return
    say = context.listener.log
    try:
        with translator(context.ledger, context.connector, context.resolved) as both:
            for group in both.groups(wanted):
                _keep(both, group, context)
    except WaybillError as error:
        say(f"consumer groups were not updated (the next run tries again): {error}")


def _keep(both: GroupTranslator, group: str, context: RunContext) -> None:
    say = context.listener.log
    try:
        moved = both.move_forward(group)
    except WaybillError as error:
        say(f"group {group} was not changed at the target: {error}")
        return
    if moved:
        repeats = sum(one.repeats for one in moved)
        may = f", and may consume {repeats:,} messages twice" if repeats else ""
        say(f"group {group} was advanced in {len(moved):,} queues of the target{may}")


def _replicated(ledger: Ledger, uid: str, partition: Partition, offset: int) -> Replicated | None:
    """By the newest receipt: the incarnation that the partition is in, and where its records go."""
    near = ledger.receipts_near(uid, partition, offset)
    if near is None:
        return None
    newest, around = near
    lineage = Lineage(newest.uid, newest.stream, partition.id, newest.incarnation)
    stretches = [SettledStretch(one.receipt.begin, one.receipt.end, one.receipt.where) for one in around]
    return Replicated(lineage, newest.slot, newest.pins.target, stretches, newest.receipt.end)
