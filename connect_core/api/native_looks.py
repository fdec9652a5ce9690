"""Plans, logs, single records, what records would become, and where consumer groups go on."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import AfterValidator, Field

from connect_core.api import native_look_examples as examples
from connect_core.api.native_asked import Document, Given, Limit, Name, Partition, storable
from connect_core.api.native_reports import Stream
from connect_core.api.native_said import JsonAnswer
from connect_core.api.native_said import add as added
from connect_core.service import native_looks as native
from connect_core.service.source_search import SearchWindow
from connect_core.service.trying import MOST, NEWEST, TryRequest

_NOT_KEPT = {"Cache-Control": "no-store"}
"""Of answers with payloads: nobody keeps them, and neither does an Idempotency-Key."""
Content = Annotated[str, AfterValidator(storable)]
Last = Annotated[int, Query(ge=1, le=MOST, description="How many")]


class TryGiven(Given):
    """The newest `last` records of the source; with a `payload` or a `topic` a record that is typed, instead."""

    last: Annotated[int, Field(strict=True, ge=1, le=MOST)] = NEWEST
    payload: Content | None = None
    topic: Content | None = None
    tags: Content | None = None
    key: Content | None = None
    headers: Annotated[list[tuple[Content, Content]], Field(max_length=1_000)] = Field(default_factory=list)

    def asked(self) -> TryRequest:
        return TryRequest(self.last, self.payload, self.topic, self.tags, self.key, tuple(self.headers))


class TryDocumentGiven(TryGiven):
    document: Document


def add(routes: APIRouter) -> None:
    one = "/connectors/{name}"
    added(routes, "GET", f"{one}/plan", show_plan, "What the next run would move", examples.PLAN)
    added(routes, "GET", f"{one}/runs/{{run}}/log", show_log, "What a run has logged in Airflow", examples.LOG)
    history = {"connector": "copy", "history": [examples.STEP]}
    added(routes, "GET", f"{one}/offsets/history", show_offset_history, "Moves of offsets, the newest first", history)
    added(routes, "GET", f"{one}/trace", trace_record, "What happened to one record", examples.TRACE)
    newest = {"name": "copy", "messages": [{"value": "one"}]}
    added(routes, "GET", f"{one}/newest", show_newest, "The newest records in the target", newest)
    in_topic = {"name": "orders", "messages": [{"value": "one"}]}
    added(routes, "GET", "/topics/newest", show_newest_of_topic, "The newest records of a topic", in_topic)
    tried = {"document": "copy", "records": [examples.TRIED]}
    added(routes, "POST", "/try", try_document, "What a document would make of records; nothing is stored", tried)
    ruled = {"connector": "copy", "records": [examples.TRIED]}
    added(routes, "POST", f"{one}/rules/try", try_rules, "What records of a connector would become", ruled)
    group = f"{one}/groups/{{group}}"
    added(routes, "GET", group, show_group, "Where a consumer group goes on in the target", examples.GROUP)
    moved = examples.GROUP | {"applied": True}
    added(routes, "POST", f"{group}/apply", apply_group, "Have a consumer group go on there", moved)


def show_plan(
    name: Name,
    sample: Annotated[int, Query(ge=0, le=MOST, description="Also what steps make of so many records")] = 0,
) -> Any:
    if sample:
        return JsonAnswer(native.plan_with_sample(name, sample), headers=_NOT_KEPT)
    return JsonAnswer(native.plan(name))


def show_log(name: Name, run: str) -> Any:
    return JsonAnswer(native.log(name, run))


def show_offset_history(name: Name, limit: Limit = 50, partition: Partition = "", stream: Stream = "live") -> Any:
    found = native.offset_history(name, partition=partition, stream=stream, limit=limit)
    return JsonAnswer({"connector": name, "history": found})


def trace_record(
    name: Name,
    source: Annotated[str, Query(description="PARTITION:OFFSET in the source")] = "",
    target: Annotated[str, Query(description="QUEUE:OFFSET in the target")] = "",
    key: Annotated[str, Query(description="Key, or message id, in the target")] = "",
    source_key: Annotated[str, Query(description="Key, or message id, in the source")] = "",
    when: Annotated[str, Query(description="A condition, as in rules, for records in a window of the source")] = "",
    ranges: Annotated[
        list[str] | None, Query(alias="range", description="With when: PARTITION:BEGIN-END", max_length=100)
    ] = None,
    begin: Annotated[str, Query(alias="from", description="With when: a time with its zone, or 2h ago")] = "",
    end: Annotated[str, Query(alias="to", description="With when: a time; without it, now")] = "",
) -> Any:
    if not (key or source_key or when or ranges or begin or end):
        return JsonAnswer(native.trace_place(name, source=source, target=target))
    window = SearchWindow(begin, end, tuple(ranges or ()))
    found = native.trace_content(
        name, source=source, target=target, key=key, source_key=source_key, when=when, window=window
    )
    return JsonAnswer(found)


def show_newest(name: Name, last: Last = 5) -> Any:
    return JsonAnswer(native.newest(name, last), headers=_NOT_KEPT)


def show_newest_of_topic(
    topic: Annotated[str, Query(description="Name of the topic")] = "",
    connection: Annotated[str, Query(description="Where it is: the name of a connection")] = "main",
    last: Last = 5,
) -> Any:
    return JsonAnswer(native.newest_of_topic(topic, last, connection=connection), headers=_NOT_KEPT)


def try_document(given: TryDocumentGiven) -> Any:
    return JsonAnswer(native.try_document(given.document, given.asked()), headers=_NOT_KEPT)


def try_rules(name: Name, given: TryGiven | None = None) -> Any:
    return JsonAnswer(native.try_rules(name, (given or TryGiven()).asked()), headers=_NOT_KEPT)


def show_group(name: Name, group: str) -> Any:
    return JsonAnswer(native.translated_group(name, group))


def apply_group(name: Name, group: str) -> Any:
    return JsonAnswer(native.move_group(name, group))
