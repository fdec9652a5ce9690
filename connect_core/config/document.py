"""The connector document, version 1: what one YAML or JSON document says, as a value.

Built by `checking` from plain data. Option values of the two systems stay as they were written here: their own models
judge them. Nothing is read, looked up or resolved.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, field_validator

from connect_core.config.document_errors import Errors
from connect_core.config.document_parts import DocumentPart, Endpoint
from connect_core.config.example_models import Example
from connect_core.config.payloads import Encode, Parse
from connect_core.config.schedule import Schedule
from connect_core.config.units import Bytes, Seconds, Share
from connect_core.pipeline import sql
from connect_core.pipeline.references import read_condition
from connect_core.pipeline.transforms.steps import STEPS, step_of
from connect_core.sdk.templates import template
from connect_core.sdk.values import Json
from connect_core.systems import topic_filters

MAX_NAME_LENGTH = 100
MAX_TASKS = 1000
MAX_AIRFLOW_NAME_LENGTH = 256
"""Of a queue and of a pool."""
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*", re.ASCII)


def check_name(name: str) -> str:
    """The name itself when it may name a connector; it becomes part of DAG ids, group names and file names."""
    if not _NAME.fullmatch(name) or len(name) > MAX_NAME_LENGTH:
        raise ValueError(
            f"{name!r} cannot name a connector: use 1 to {MAX_NAME_LENGTH} of A-Z a-z 0-9 . _ - "
            "and begin with a letter, a digit or _"
        )
    return name


def check_airflow_name(name: str) -> str:
    """The name itself when it may name a queue or a pool of Airflow; several queues stand in one list with commas."""
    if not _NAME.fullmatch(name) or len(name) > MAX_AIRFLOW_NAME_LENGTH:
        raise ValueError(
            f"{name!r} cannot name a queue or a pool: use 1 to {MAX_AIRFLOW_NAME_LENGTH} of A-Z a-z 0-9 . _ - "
            "and begin with a letter, a digit or _"
        )
    return name


def check_condition(text: str) -> str:
    """The text itself when it is empty or a condition."""
    if text:
        sql.condition(text)
    return text


def check_rule_name(name: str) -> str:
    """The name itself when it may name a rule."""
    if not _NAME.fullmatch(name) or len(name) > MAX_NAME_LENGTH:
        raise ValueError(f"{name!r} cannot name a rule: use 1 to {MAX_NAME_LENGTH} of A-Z a-z 0-9 . _ -")
    return name


def check_filter(topic_filter: str) -> str:
    """The filter itself when it is empty or legal."""
    return topic_filters.check(topic_filter) if topic_filter else topic_filter


def check_when(when: str) -> str:
    """The text itself when it is empty or a condition of rules."""
    if when:
        read_condition(when)
    return when


def check_transform(written: Json) -> Json:
    """The step itself when it can be done with some rows or other."""
    step_of(written)
    return written


def check_template(text: str) -> str:
    """The text itself when each of its places names something."""
    template(text)
    return text


class Filter(DocumentPart):
    """Which records pass; the others are counted as filtered. All that is given must hold."""

    tags: list[str] = Field(default_factory=list, description="Records with one of these tags; empty: any tags.")
    headers: dict[str, str] = Field(
        default_factory=dict, description="Records whose headers (user properties) have these values."
    )
    sql: Annotated[str, AfterValidator(check_condition)] = Field(
        default="",
        description="Records for which this holds, as RocketMQ reads SQL92 conditions: `amount > 100 AND region IN "
        "('eu', 'us')`. The names are those of headers; TAGS and KEYS are there as well.",
    )
    when: Annotated[str, AfterValidator(check_when)] = Field(
        default="",
        description="A condition as rules have it: records for which it holds. `payload:text CONTAINS 'ERROR'`.",
    )


class Rule(DocumentPart):
    """Which records it matches, and what each of them becomes. A record gives one output for each rule it matches."""

    name: Annotated[str, AfterValidator(check_rule_name)] = Field(description="Unique among the rules.")
    filter: Annotated[str, AfterValidator(check_filter)] = Field(
        default="",
        description="MQTT topic filter, with + and #, for the topic that a record came from; empty: any topic.",
    )
    when: Annotated[str, AfterValidator(check_when)] = Field(
        default="",
        description="A condition, as `filter.sql` has it, on `$.name` of a JSON payload, `payload:text`, `topic[1]`, "
        "`header:NAME`, TAGS, KEYS and `file:name`; empty: always.",
    )
    to: Annotated[str, AfterValidator(check_template)] | None = Field(
        default=None, min_length=1, description="Topic of the target; by default the topic that the sink chooses."
    )
    tags: Annotated[str, AfterValidator(check_template)] | None = Field(
        default=None, description="Template of the tags, such as `{topic[2]}-{$.unit}`; by default those of the record."
    )
    keys: Annotated[str, AfterValidator(check_template)] | None = Field(
        default=None, description="Template of the key, such as `{$.id}`; by default that of the record."
    )
    enabled: bool = Field(default=True, strict=True, description="Whether the rule is applied.")


class Limits(DocumentPart):
    """How much one range may hold, and how fast a connector may go."""

    range_records: int = Field(
        default=1_000_000, ge=1, le=10_000_000, strict=True, description="Maximum number of records in a range."
    )
    range_bytes: Bytes = Field(default=2**30, ge=1024, description="Approximate number of bytes in a range.")
    records_per_second: int = Field(
        default=0,
        ge=0,
        strict=True,
        description="Records a second that the connector reads at most, divided equally among its tasks; 0: no limit.",
    )


class Alerts(DocumentPart):
    """When `waybill lag` calls a connector late or silent."""

    lag: Seconds | None = Field(default=None, gt=0, description="Late when records have been waiting for this long.")
    silent: Seconds | None = Field(
        default=None, gt=0, description="Silent when nothing has been settled for this long."
    )


class Verification(DocumentPart):
    """How often the target is read again and compared with the receipts, and how much of it."""

    every: Seconds = Field(ge=1, description="Verify the target at this interval, at least 1s.")
    share: Share = Field(
        default="100%",
        validate_default=True,
        description="About this share of all settled ranges each time, in whole runs chosen by chance.",
    )


class AirflowTasks(DocumentPart):
    """Where Airflow runs the tasks of a connector, and beside how many others."""

    queue: Annotated[str, AfterValidator(check_airflow_name)] | None = Field(
        default=None,
        description="Queue that workers take its tasks from (CeleryExecutor); by default the one that Airflow names.",
    )
    pool: Annotated[str, AfterValidator(check_airflow_name)] | None = Field(
        default=None, description="Pool that counts its tasks; it must exist in Airflow. By default default_pool."
    )


class ConnectorDocument(DocumentPart):
    """What a connector is. `source` and `sink` name a system each; all else has a default."""

    version: Literal[1] = Field(description="Version of the document format.")
    name: Annotated[str, AfterValidator(check_name)] = Field(description="Unique name of the connector.")
    description: str = Field(default="", max_length=2000, description="For people.")
    source: Endpoint = Field(description="Where records are read: {SYSTEM: {options}}.")
    sink: Endpoint = Field(description="Where records are written: {SYSTEM: {options}}.")
    tasks: int = Field(default=1, ge=1, le=MAX_TASKS, strict=True, description="How many tasks share the partitions.")
    assignment: Literal["even", "consistent-hash"] = Field(
        default="even",
        description="How tasks divide the partitions: even, or consistent-hash, which moves few when tasks changes.",
    )
    engine: str | None = Field(
        default=None,
        min_length=1,
        max_length=MAX_NAME_LENGTH,
        description="Where workers run: spark, submit, inline or a file of conf/engines; by default the setting.",
    )
    schedule: Schedule = Field(
        default_factory=lambda: Schedule(manual=True), description="When runs start; by default by hand only."
    )
    limits: Limits = Field(default_factory=Limits, description="How much one range may hold.")
    filter: Filter = Field(default_factory=Filter, description="Which records pass; by default all of them.")
    parse: Parse = Field(default_factory=Parse, description="What payloads are.")
    rules: list[Rule] = Field(
        default_factory=list,
        max_length=1000,
        description="What records become and where they go; those that match none are filtered. Without rules all of "
        "them pass as they are.",
    )
    examples: list[Example] = Field(
        default_factory=list,
        max_length=1000,
        description="Records, and what filter, parse and rules are to make of them: a document of which one does not "
        "hold is refused by `check` and `apply`. Runs do without them, and references in them stay text.",
    )
    transforms: list[Annotated[Json, AfterValidator(check_transform)]] = Field(
        default_factory=list,
        max_length=1000,
        description=f"Steps that change the fields of a record, before rules: {', '.join(STEPS)}. They need the fields "
        "that `parse` says.",
    )
    encode: Encode = Field(default_factory=Encode, description="What is delivered of a record with fields.")
    errors: Errors = Field(default_factory=Errors, description="What happens to records that fail or are gone.")
    alerts: Alerts = Field(default_factory=Alerts, description="When the connector counts as late.")
    verify: Verification | None = Field(
        default=None, description="When Airflow reads the target again and compares it; by default never."
    )
    airflow: AirflowTasks = Field(default_factory=AirflowTasks, description="Where Airflow runs the tasks.")

    @property
    def reshapes(self) -> bool:
        """Whether payloads are written anew."""
        return bool(self.transforms) or self.encode.format != "none"

    @field_validator("rules")
    @classmethod
    def _unlike_each_other(cls, rules: list[Rule]) -> list[Rule]:
        names = [rule.name for rule in rules]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f'two rules have the name "{name}"')
        return rules
