"""rules list | add | set | enable | disable | delete | try: what a connector makes of its records.

Each change is a new revision of the document, checked and shown as `apply` does it, and counts from the next range on.
Changes that are made at the same moment are made one behind the other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from connect_core.cli import completing, output, session
from connect_core.cli.columns import Column
from connect_core.cli.output import JsonFlag, WideFlag
from connect_core.cli.trying import register as register_try
from connect_core.errors import ConfigError

if TYPE_CHECKING:
    from connect_core.cli.session import Session
    from connect_core.sdk.values import Json

app = typer.Typer(no_args_is_help=True, help="What a connector makes of its records, and where they go.")
register_try(app)

Name = Annotated[
    str, typer.Argument(help="Name of the connector.", metavar="NAME", autocompletion=completing.connectors)
]
RuleName = Annotated[str, typer.Argument(help="Name of the rule.", metavar="RULE")]
Filter = Annotated[str | None, typer.Option("--filter", help="MQTT topic filter, with + and #.")]
When = Annotated[str | None, typer.Option("--when", help="Condition, as \"$.temp > 30 AND topic[1] = 'site'\".")]
To = Annotated[str | None, typer.Option("--to", help="Topic of the target.")]
Tags = Annotated[str | None, typer.Option("--tags", help="Template of the tags, as {topic[2]}.")]
Keys = Annotated[str | None, typer.Option("--keys", help="Template of the key, as {$.id}.")]
Why = Annotated[str, typer.Option("--why", help="Kept with the revision.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would change; write nothing.")]

_OPTIONS = ("filter", "when", "to", "tags", "keys")
Change = Callable[[list["Json"]], list["Json"]]


@app.command("list")
def list_(name: Name, wide: WideFlag = False, as_json: JsonFlag = False) -> None:
    """The rules of a connector, in the order in which a record's outputs are numbered."""
    with session.reading() as opened:
        rules = list(opened.ledger.connector(name).document.get("rules") or [])
    rows = [[one["name"], one.get("enabled", True), *(one.get(option) for option in _OPTIONS)] for one in rules]
    columns = (Column("NAME"), Column("ENABLED"), *(Column(option.upper(), least=8) for option in _OPTIONS))
    nothing = "no rules: every record passes as it is"
    output.emit(as_json, {"connector": name, "rules": rules}, lambda: output.table(columns, rows, nothing, wide=wide))


@app.command()
def add(
    name: Name,
    rule: RuleName,
    filter: Filter = None,
    when: When = None,
    to: To = None,
    tags: Tags = None,
    keys: Keys = None,
    before: Annotated[str, typer.Option("--before", help="The rule that it stands before; else it is last.")] = "",
    disabled: Annotated[bool, typer.Option("--disabled", help="It does not count yet.")] = False,
    why: Why = "",
    dry_run: DryRun = False,
    as_json: JsonFlag = False,
) -> None:
    """Add a rule. It matches what all of its options say; without any, every record."""
    new = {"name": rule} | _given(filter, when, to, tags, keys) | ({"enabled": False} if disabled else {})

    def change(rules: list[Json]) -> list[Json]:
        if any(one["name"] == rule for one in rules):
            raise ConfigError(f"{name} has a rule {rule} already", next_step="Change it with `waybill rules set`")
        place = _place(rules, name, before) if before else len(rules)
        return [*rules[:place], new, *rules[place:]]

    _changed(name, change, why, dry_run, as_json)


@app.command("set")
def set_(
    name: Name,
    rule: RuleName,
    filter: Filter = None,
    when: When = None,
    to: To = None,
    tags: Tags = None,
    keys: Keys = None,
    unset: Annotated[list[str] | None, typer.Option("--unset", help="An option to take away. Repeat it.")] = None,
    why: Why = "",
    dry_run: DryRun = False,
    as_json: JsonFlag = False,
) -> None:
    """Change options of a rule; the others stay."""
    given, gone = _given(filter, when, to, tags, keys), unset or []
    if wrong := [option for option in gone if option not in _OPTIONS or option in given]:
        raise ConfigError(f"--unset {wrong[0]} cannot be", next_step=f"It takes {', '.join(_OPTIONS)} that are not set")
    if not given and not gone:
        raise ConfigError("there is nothing to change", next_step="Give an option to set, or --unset")
    _changed_rule(
        name, rule, lambda old: {k: v for k, v in (old | given).items() if k not in gone}, why, dry_run, as_json
    )


@app.command()
def enable(name: Name, rule: RuleName, why: Why = "", dry_run: DryRun = False, as_json: JsonFlag = False) -> None:
    """Let a rule count."""
    _changed_rule(name, rule, lambda old: {k: v for k, v in old.items() if k != "enabled"}, why, dry_run, as_json)


@app.command()
def disable(name: Name, rule: RuleName, why: Why = "", dry_run: DryRun = False, as_json: JsonFlag = False) -> None:
    """Keep a rule, but do not let it count. When none counts, every record is filtered."""
    _changed_rule(name, rule, lambda old: old | {"enabled": False}, why, dry_run, as_json)


@app.command()
def delete(name: Name, rule: RuleName, why: Why = "", dry_run: DryRun = False, as_json: JsonFlag = False) -> None:
    """Take a rule away. Without any rule, every record passes as it is."""

    def change(rules: list[Json]) -> list[Json]:
        place = _place(rules, name, rule)
        return rules[:place] + rules[place + 1 :]

    _changed(name, change, why, dry_run, as_json)


def _given(*values: str | None) -> Json:
    return {option: value for option, value in zip(_OPTIONS, values, strict=True) if value is not None}


def _place(rules: list[Json], name: str, rule: str) -> int:
    names = [one["name"] for one in rules]
    if rule not in names:
        known = f"It has {', '.join(names)}" if names else f"Add one: waybill rules add {name} {rule}"
        raise ConfigError(f"{name} has no rule {rule}", next_step=known)
    return names.index(rule)


def _changed_rule(name: str, rule: str, change: Callable[[Json], Json], why: str, dry_run: bool, as_json: bool) -> None:
    def all_of_them(rules: list[Json]) -> list[Json]:
        place = _place(rules, name, rule)
        return [change(one) if n == place else one for n, one in enumerate(rules)]

    _changed(name, all_of_them, why, dry_run, as_json)


def _changed(name: str, change: Change, why: str, dry_run: bool, as_json: bool) -> None:
    with session.reading() as opened:
        while (told := _applied(opened, name, change, why, dry_run)) is None:
            pass  # somebody else has changed the document meanwhile: the same change of what it says now
    for text in told["notices"]:
        output.notice(f"{name}: {text}")
    output.emit(as_json, told, lambda: _show(told))


def _applied(opened: Session, name: str, change: Change, why: str, dry_run: bool) -> dict[str, Any] | None:
    """Checked, shown and stored as `apply` does it. None when it was made from a revision that is not the newest any
    more."""
    from connect_core.config import Written, check, difference
    from connect_core.orchestration import control

    old = opened.ledger.connector(name)
    rules = change(list(old.document.get("rules") or []))
    kept = {key: value for key, value in old.document.items() if key != "rules"}
    document = kept | ({"rules": rules} if rules else {})
    checked = check(Written(document, f"connector {name}"), opened.home, opened.settings)
    told: dict[str, Any] = {"connector": name, "applied": not dry_run, "revision": old.revision, "rules": rules}
    told |= {"difference": difference(old.document, checked.data), "notices": list(checked.notices)}
    if old.document.get("rules") and not rules:
        told["notices"].append("no rule is left: every record passes as it is")
    if not dry_run:
        applied = opened.ledger.revise(old, checked.data, who=opened.settings.user, why=why)
        if applied is None:
            return None
        told["revision"] = applied.connector.revision
        control.parse_now(opened.home, opened.settings)
    return told


def _show(told: dict[str, Any]) -> None:
    verb = "would be " if not told["applied"] else ""
    changed = f"{verb}changed, revision {told['revision']}" if told["difference"] else "unchanged"
    output.line(f"{told['connector']}: {changed}")
    for line in told["difference"]:
        output.line(f"  {line}")
