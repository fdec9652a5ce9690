"""Consumer groups of replicated topics: where they go on at the target."""

from __future__ import annotations

from connect_core.errors import ConfigError
from connect_core.replication.driver.consumer_groups import translator
from connect_core.sdk.values import Json
from connect_core.service.opened import Opened


def translate(opened: Opened, name: str, group: str, *, apply: bool = False) -> Json:
    """The offset of each queue of the target at which the group goes on, and what they were made from; with `apply`
    they are written there. Raises ConfigError for a group that has no offset in anything that the connector reads."""
    connector = opened.ledger.connector(name)
    with translator(opened.ledger, connector, opened.resolved(connector)) as both:
        found = both.translate(group)
        if not found.places:
            raise ConfigError(
                f"The group {group} has no offset in any queue that {name} reads",
                next_step="Check its name; a group that never consumed may start at the target as a new one",
            )
        if apply:
            both.write(group, found.moves)
            opened.ledger.note_group(connector.uid, group, len(found.moves), who=opened.settings.user)
    return {
        "connector": name,
        "group": group,
        "applied": apply,
        "queues": [vars(one) for one in found.places],
        "offsets": [vars(one) for one in found.moves],
        "retry_backlog": dict(found.retry_backlog),
    }
