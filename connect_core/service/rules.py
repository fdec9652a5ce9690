"""What a connector makes of its records. Each change is a new revision of the document, checked as `documents.apply`
does it, and counts from the next range on. Changes that are made at the same moment are made one behind the other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from connect_core.config import Written, check_beside, difference
from connect_core.errors import ConfigError
from connect_core.ledger import Connector
from connect_core.sdk.values import Json
from connect_core.service.opened import Opened

OPTIONS = ("filter", "when", "to", "tags", "keys")

RuleChange = Callable[[list[Json]], list[Json]]
"""All rules of a connector become others. Raises ConfigError for a change that cannot be made of them."""


def listed(opened: Opened, name: str) -> list[Json]:
    """In the order in which a record's outputs are numbered."""
    return list(opened.ledger.connector(name).document.get("rules") or [])


def adding(name: str, rule: str, options: Json, *, before: str = "", enabled: bool = True) -> RuleChange:
    """`name` is the connector, here and below, for messages. `before` is the rule that it stands before; else it is
    last."""
    new = {"name": rule} | options | ({} if enabled else {"enabled": False})

    def change(rules: list[Json]) -> list[Json]:
        if any(one["name"] == rule for one in rules):
            raise ConfigError(f"{name} already has a rule {rule}", next_step="Change it with `waybill rules set`")
        place = _place(rules, name, before) if before else len(rules)
        return [*rules[:place], new, *rules[place:]]

    return change


def setting(name: str, rule: str, given: Json, unset: Collection[str]) -> RuleChange:
    """The options that are neither `given` nor `unset` stay."""
    _check_options(given, unset)

    def change(old: Json) -> Json:
        return {option: value for option, value in (old | given).items() if option not in unset}

    return _of_one(name, rule, change)


def enabling(name: str, rule: str) -> RuleChange:
    def change(old: Json) -> Json:
        return {option: value for option, value in old.items() if option != "enabled"}

    return _of_one(name, rule, change)


def disabling(name: str, rule: str) -> RuleChange:
    """It is kept and does not count. When none counts, every record is filtered."""
    return _of_one(name, rule, lambda old: old | {"enabled": False})


def deleting(name: str, rule: str) -> RuleChange:
    """Without any rule, every record passes as it is."""

    def change(rules: list[Json]) -> list[Json]:
        place = _place(rules, name, rule)
        return rules[:place] + rules[place + 1 :]

    return change


def put(
    opened: Opened, name: str, wanted: list[Json], *, revision: int, why: str = "", dry_run: bool = False
) -> Json | None:
    """All of them at once, made from this revision; None, and nothing is changed, where that is not the newest."""
    old = opened.ledger.connector(name)
    return _made_of(opened, old, lambda _: wanted, why, dry_run) if old.revision == revision else None


def _check_options(given: Json, unset: Collection[str]) -> None:
    """Raises ConfigError for a change of options that cannot be, or is none."""
    if wrong := [option for option in unset if option not in OPTIONS or option in given]:
        raise ConfigError(f"--unset {wrong[0]} cannot be", next_step=f"It takes {', '.join(OPTIONS)} that are not set")
    if not given and not unset:
        raise ConfigError("There is nothing to change", next_step="Give an option to set, or --unset")


def _place(rules: list[Json], name: str, rule: str) -> int:
    names = [one["name"] for one in rules]
    if rule not in names:
        known = f"It has {', '.join(names)}" if names else f"Add one: waybill rules add {name} {rule}"
        raise ConfigError(f"{name} has no rule {rule}", next_step=known)
    return names.index(rule)


def _of_one(name: str, rule: str, change: Callable[[Json], Json]) -> RuleChange:
    def all_of_them(rules: list[Json]) -> list[Json]:
        place = _place(rules, name, rule)
        return [change(one) if n == place else one for n, one in enumerate(rules)]

    return all_of_them


def changed(opened: Opened, name: str, change: RuleChange, *, why: str = "", dry_run: bool = False) -> Json:
    """The rules as they are then, and the difference to the document before."""
    while (told := _applied(opened, name, change, why, dry_run)) is None:
        pass  # somebody else has changed the document meanwhile: the same change of what it says now
    return told


def _applied(opened: Opened, name: str, change: RuleChange, why: str, dry_run: bool) -> Json | None:
    """None when it was made from a revision that is not the newest any more."""
    return _made_of(opened, opened.ledger.connector(name), change, why, dry_run)


def _made_of(opened: Opened, old: Connector, change: RuleChange, why: str, dry_run: bool) -> Json | None:
    name = old.name
    rules = change(list(old.document.get("rules") or []))
    kept = {key: value for key, value in old.document.items() if key != "rules"}
    document = kept | ({"rules": rules} if rules else {})
    written = Written(document, f"connector {name}")
    standing = {one.name: one.document for one in opened.ledger.connectors()}
    checked = check_beside(written, opened.home, opened.settings, standing)
    told: Json = {"connector": name, "applied": not dry_run, "revision": old.revision, "rules": rules}
    told |= {"difference": difference(old.document, checked.data), "notices": list(checked.notices)}
    if old.document.get("rules") and not rules:
        told["notices"].append("no rule is left: every record passes as it is")
    if not dry_run:
        applied = opened.ledger.revise(old, checked.data, who=opened.settings.user, why=why)
        if applied is None:
            return None
        told["revision"] = applied.connector.revision
        from connect_core.orchestration import control

        control.parse_now(opened.home, opened.settings)
    return told
