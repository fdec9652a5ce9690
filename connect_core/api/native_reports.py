"""What was moved and what waits: runs, receipts, gaps, lag, offsets, dead letters; and offsets moved."""

from __future__ import annotations

import logging
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field

from connect_core.api import native_examples as examples
from connect_core.api.native_asked import (
    After,
    ChosenLetters,
    Given,
    Limit,
    Name,
    OffsetsByPartition,
    Partition,
    Preview,
    Run,
)
from connect_core.api.native_said import JsonAnswer
from connect_core.api.native_said import add as added
from connect_core.service import native_reports as native

_log = logging.getLogger(__name__)
Stream = Annotated[str, Query(description="`live`, `all`, or a backfill's")]
Text = Annotated[str, Query()]


class OffsetsGiven(Given):
    """By partition the offset to read next; null for the oldest record. `before` has the offset of each of these
    partitions as a preview has told it: nothing is moved where one is another now."""

    offsets: OffsetsByPartition
    before: OffsetsByPartition = Field(default_factory=dict)
    why: str = ""


def add(routes: APIRouter) -> None:
    one = "/connectors/{name}"
    runs = {"runs": [examples.RUN], "after": None}
    added(routes, "GET", f"{one}/runs", list_runs, "Runs, the newest first", runs)
    report = {**examples.RUN, "total": examples.TOTAL}
    added(routes, "GET", f"{one}/runs/{{run}}", show_run, "What one run did, its receipts added up", report)
    receipts = {"receipts": [examples.RECEIPT], "after": None}
    added(routes, "GET", f"{one}/receipts", list_receipts, "Receipts, the newest first", receipts)
    gaps = {"gaps": [examples.GAP], "after": None}
    added(routes, "GET", f"{one}/gaps", list_gaps, "Records that were gone, or left out, the newest first", gaps)
    added(routes, "GET", f"{one}/lag", show_lag, "What waits in the source", examples.LAG)
    every = {"connectors": [examples.LAG]}
    added(routes, "GET", "/lag", show_all_lag, "What waits in the sources of all connectors", every)
    offsets = {"connector": "copy", "offsets": [examples.OFFSET]}
    added(routes, "GET", f"{one}/offsets", show_offsets, "Where each partition is read next", offsets)
    added(routes, "PATCH", f"{one}/offsets", move_offsets, "Move offsets of a connector that is paused", examples.MOVED)
    letters = {"dead_letters": [examples.LETTER], "after": None}
    added(routes, "GET", f"{one}/dead-letters", list_dead_letters, "Rejected records, the newest first", letters)
    one_letter = f"{one}/dead-letters/{{number}}"
    added(routes, "GET", one_letter, show_dead_letter, "A rejected record with what it held", examples.SHOWN_LETTER)


def list_runs(name: Name, limit: Limit = 100, after: After = "", stream: Stream = "all") -> Any:
    return JsonAnswer(native.runs(name, limit=limit, after=after, stream=stream).told("runs"))


def show_run(name: Name, run: str) -> Any:
    return JsonAnswer(native.run(name, run))


def list_receipts(
    name: Name,
    limit: Limit = 100,
    after: After = "",
    partition: Partition = "",
    run: Run = "",
    stream: Stream = "",
) -> Any:
    found = native.receipts(name, limit=limit, after=after, partition=partition, run=run, stream=stream)
    return JsonAnswer(found.told("receipts"))


def list_gaps(name: Name, limit: Limit = 100, after: After = "") -> Any:
    return JsonAnswer(native.gaps(name, limit=limit, after=after).told("gaps"))


def show_lag(name: Name) -> Any:
    return JsonAnswer(native.waiting(name))


def show_all_lag() -> Any:
    return JsonAnswer({"connectors": native.all_waiting()})


def show_offsets(name: Name, stream: Stream = "live") -> Any:
    return JsonAnswer({"connector": name, "offsets": native.committed(name, stream=stream)})


def move_offsets(name: Name, given: OffsetsGiven, preview: Preview = False) -> Any:
    seen = given.said("before")
    return JsonAnswer(native.move(name, given.offsets, _log.info, why=given.why, preview=preview, seen=seen))


def list_dead_letters(name: Name, words: ChosenLetters, limit: Limit = 100, after: After = "") -> Any:
    return JsonAnswer(native.letters(name, words, limit=limit, after=after).told("dead_letters"))


def show_dead_letter(name: Name, number: str) -> Any:
    return JsonAnswer(native.letter(name, number))
