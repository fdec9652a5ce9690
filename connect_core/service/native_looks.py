"""What may be looked at without moving anything, for the routes of Waybill's own API: plans, logs, single records, what
records would become. Each function asks what the caller may: what shows payloads is for an admin.

Each raises NotFound for a connector that is not there for the caller.
"""

from __future__ import annotations

from connect_core.config import Written, WrittenDocuments
from connect_core.errors import ConfigError, Fault
from connect_core.sdk.values import LIVE, Json
from connect_core.service import callers, groups, lag, logs, offsets, peeking, tracing, trying
from connect_core.service.native_connectors import in_words_of_documents, refuse_masks
from connect_core.service.opened import reading
from connect_core.service.source_search import SearchWindow
from connect_core.service.trying import TryRequest
from connect_core.service.visible import may_write, named

_DOCUMENT = "document"


def plan(name: str) -> Json:
    """What the next run would move. Raises what the source raises."""
    callers.require("viewer")
    named(name)
    with reading() as opened:
        return lag.plan(opened, name)


def plan_with_sample(name: str, sample: int) -> Json:
    """The same, with what each step makes of the newest records."""
    callers.require("admin", name)
    named(name)
    with reading() as opened:
        return lag.plan_with_sample(opened, name, sample)


def log(name: str, run: str) -> Json:
    """Of one run. Raises NotFound for an id that is none of this connector, and Unreachable for Airflow."""
    callers.require("viewer")
    named(name)
    with reading() as opened:
        return logs.log_of(opened, name, run)


def offset_history(name: str, *, partition: str = "", stream: str = LIVE, limit: int) -> list[Json]:
    """Every move of the committed positions, by settled ranges and by hand, the newest first."""
    callers.require("viewer")
    named(name)
    with reading() as opened:
        return offsets.history(opened, name, partition=partition, stream=stream, last=limit)


def trace_place(name: str, *, source: str = "", target: str = "") -> Json:
    """What became of the record at one of these places. Raises ConfigError where there is none."""
    callers.require("viewer")
    named(name)
    with reading() as opened:
        return tracing.traced(opened, name, source=source, target=target)


def trace_content(
    name: str,
    *,
    source: str = "",
    target: str = "",
    key: str = "",
    source_key: str = "",
    when: str = "",
    window: SearchWindow | None = None,
) -> Json:
    """The same of records by what they hold: whoever may ask for that learns what they hold."""
    callers.require("admin", name)
    named(name)
    with reading() as opened:
        return tracing.traced(
            opened, name, source=source, target=target, key=key, source_key=source_key, when=when, window=window
        )


def newest(name: str, last: int) -> Json:
    """What stands last in its target. Raises ConfigError for a system that cannot be looked into."""
    callers.require("admin", name)
    named(name)
    with reading() as opened:
        return peeking.of_connector(opened, name, last)


def newest_of_topic(topic: str, last: int, *, connection: str) -> Json:
    """The same of a topic, which is where the connection leads: for who may read it with a document as well."""
    callers.require("admin")
    if not topic:
        raise ConfigError("Say which topic", faults=(Fault("topic", "names none"),))
    return peeking.newest(topic, last, is_topic=True, connection=connection)


def try_document(document: Json, asked: TryRequest) -> Json:
    """What a document would make of records of its source, or of one that is typed; nothing is stored. Raises
    ConfigError with every fault, and NotAllowed where the caller may not apply it."""
    name = document.get("name")
    if isinstance(name, str):
        may_write(name)
    else:
        callers.require("admin")
    refuse_masks({_DOCUMENT: document})
    with in_words_of_documents([_DOCUMENT]):
        tried = trying.given(WrittenDocuments([Written(document, _DOCUMENT)]), _DOCUMENT)
    return {"document": tried.document.name, "records": trying.became(tried, asked)}


def try_rules(name: str, asked: TryRequest) -> Json:
    """The same of a connector with its rules and transforms."""
    callers.require("admin", name)
    named(name)
    with reading() as opened:
        return {"connector": name, "records": trying.became(trying.applied(opened, name), asked)}


def translated_group(name: str, group: str) -> Json:
    """At which offsets a consumer group of the source goes on in the target; nothing is written."""
    callers.require("viewer")
    named(name)
    with reading() as opened:
        return groups.translate(opened, name, group)


def move_group(name: str, group: str) -> Json:
    """The same, and writes them there: whom the group has at work in the target goes on from them. Raises what the
    target raises."""
    callers.require("admin", name)
    named(name)
    with reading() as opened:
        return groups.translate(opened, name, group, apply=True)
