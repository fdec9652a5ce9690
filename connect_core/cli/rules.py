"""rules list | add | set | enable | disable | delete | try: what a connector makes of its records.

Each change is a new revision of the document, shown as `apply` does it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from connect_core.cli import completing, output
from connect_core.cli.columns import Column
from connect_core.cli.installation import installation
from connect_core.cli.output import JsonFlag, WideFlag
from connect_core.cli.trying import register_of_rules

if TYPE_CHECKING:
    from connect_core.service.rules import RuleChange

app = typer.Typer(no_args_is_help=True, help="List, change and try the rules of a connector.")
register_of_rules(app)

Name = Annotated[
    str, typer.Argument(help="Name of the connector.", metavar="NAME", autocompletion=completing.connectors)
]
RuleName = Annotated[str, typer.Argument(help="Name of the rule.", metavar="RULE")]
Filter = Annotated[str | None, typer.Option("--filter", help="MQTT topic filter, with + and #.")]
When = Annotated[str | None, typer.Option("--when", help="Condition, such as \"$.temp > 30 AND topic[1] = 'site'\".")]
To = Annotated[str | None, typer.Option("--to", help="Topic of the target.")]
Tags = Annotated[str | None, typer.Option("--tags", help="Template of the tags, such as {topic[2]}.")]
Keys = Annotated[str | None, typer.Option("--keys", help="Template of the key, such as {$.id}.")]
Why = Annotated[str, typer.Option("--why", help="Reason, kept with the revision.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would change; write nothing.")]

_OPTIONS = ("filter", "when", "to", "tags", "keys")


@app.command("list")
def list_(name: Name, wide: WideFlag = False, as_json: JsonFlag = False) -> None:
    """List the rules of a connector, in the order in which a record's outputs are numbered."""
    found = installation().rules(name)
    rows = [[one["name"], one.get("enabled", True), *(one.get(option) for option in _OPTIONS)] for one in found]
    columns = (Column("NAME"), Column("ENABLED"), *(Column(option.upper(), least=8) for option in _OPTIONS))
    nothing = "no rules: every record passes as it is"
    output.emit(as_json, {"connector": name, "rules": found}, lambda: output.table(columns, rows, nothing, wide=wide))


@app.command()
def add(
    name: Name,
    rule: RuleName,
    filter: Filter = None,
    when: When = None,
    to: To = None,
    tags: Tags = None,
    keys: Keys = None,
    before: Annotated[str, typer.Option("--before", help="Insert it before this rule; without it, at the end.")] = "",
    disabled: Annotated[bool, typer.Option("--disabled", help="Add it disabled.")] = False,
    why: Why = "",
    dry_run: DryRun = False,
    as_json: JsonFlag = False,
) -> None:
    """Add a rule. It matches records that meet all of its options; without options, every record."""
    from connect_core.service import rules

    given = _given(filter, when, to, tags, keys)
    _change(name, rules.adding(name, rule, given, before=before, enabled=not disabled), why, dry_run, as_json)


@app.command("set")
def set_(
    name: Name,
    rule: RuleName,
    filter: Filter = None,
    when: When = None,
    to: To = None,
    tags: Tags = None,
    keys: Keys = None,
    unset: Annotated[
        list[str] | None, typer.Option("--unset", help="An option to remove. May be given several times.")
    ] = None,
    why: Why = "",
    dry_run: DryRun = False,
    as_json: JsonFlag = False,
) -> None:
    """Change options of a rule; the others stay."""
    from connect_core.service import rules

    given = _given(filter, when, to, tags, keys)
    _change(name, rules.setting(name, rule, given, unset or []), why, dry_run, as_json)


@app.command()
def enable(name: Name, rule: RuleName, why: Why = "", dry_run: DryRun = False, as_json: JsonFlag = False) -> None:
    """Enable a rule."""
    from connect_core.service import rules

    _change(name, rules.enabling(name, rule), why, dry_run, as_json)


@app.command()
def disable(name: Name, rule: RuleName, why: Why = "", dry_run: DryRun = False, as_json: JsonFlag = False) -> None:
    """Disable a rule, but keep it. If all rules are disabled, every record is filtered."""
    from connect_core.service import rules

    _change(name, rules.disabling(name, rule), why, dry_run, as_json)


@app.command()
def delete(name: Name, rule: RuleName, why: Why = "", dry_run: DryRun = False, as_json: JsonFlag = False) -> None:
    """Delete a rule. Without any rule, every record passes as it is."""
    from connect_core.service import rules

    _change(name, rules.deleting(name, rule), why, dry_run, as_json)


def _given(*values: str | None) -> dict[str, Any]:
    return {option: value for option, value in zip(_OPTIONS, values, strict=True) if value is not None}


def _change(name: str, change: RuleChange, why: str, dry_run: bool, as_json: bool) -> None:
    told = installation().change_rules(name, change, why=why, dry_run=dry_run)
    for text in told["notices"]:
        output.notice(f"{told['connector']}: {text}")
    output.emit(as_json, told, lambda: _show_difference(told))


def _show_difference(told: dict[str, Any]) -> None:
    verb = "would be " if not told["applied"] else ""
    changed = f"{verb}changed, revision {told['revision']}" if told["difference"] else "unchanged"
    output.line(f"{told['connector']}: {changed}")
    for line in told["difference"]:
        output.line(f"  {line}")
