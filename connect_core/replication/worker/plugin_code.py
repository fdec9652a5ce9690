"""The packages whose code works through a lane: within a range one version alone (delivery rule 8), and its receipt
says which.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

from connect_core import packages
from connect_core.errors import Failure
from connect_core.packages import Replaced
from connect_core.version import running
from connect_core.work import Lane, Outcome

_KEY = "packages"
"""In `where` of a receipt."""


def of_one_version(lane: Lane, outcomes: Sequence[Outcome], before: Mapping[str, int]) -> list[Outcome]:
    """The same, with packages in receipts that have not planned their range. Where one was replaced while parts of it
    were loaded (`before` is what `packages.modules` said at the beginning) no range has a receipt: nobody knows what of
    it did which version, and the next attempt looks in the target."""
    if not packages.modules():
        return list(outcomes)
    if mixed := packages.mixed(before) or _may_have_rejected(outcomes):
        failure = Failure.of(packages.mixed_error(mixed, f"connector {lane.connector}, task {lane.task}"))
        return [Outcome(one.range_id, None, failure, clean=False) for one in outcomes]
    used = running((lane.source.system, lane.sink.system), lane.pipeline)
    here = {f"{name}: {release}" for name, release in used.items()}
    planned_by = {item.id: item.range.pins.code.split(", ") for item in lane.ranges}
    return [_told(one, here - {*planned_by[one.range_id]}) for one in outcomes]


def _may_have_rejected(outcomes: Sequence[Outcome]) -> list[Replaced]:
    """Packages that are replaced by now, where records were rejected: a part that it could not load any longer fails as
    a record may."""
    rejected = any(one.receipt is not None and one.receipt.rejected for one in outcomes)
    return packages.replaced() if rejected else []


def _told(one: Outcome, others: Set[str]) -> Outcome:
    """With the packages that have worked and not planned: the others the range has pinned."""
    if one.receipt is None or not others:
        return one
    return replace(one, receipt=replace(one.receipt, where=one.receipt.where | {_KEY: sorted(others)}))
