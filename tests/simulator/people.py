"""Who answers when a run of a journey says that a person is needed."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from connect_core.errors import OffsetGone, TargetChanged, TooManyRejects, WaybillError
from connect_core.sdk.records import Partition
from tests.simulator.checker import Told
from tests.simulator.ledger import UID
from tests.simulator.logfiles import LogFile
from tests.simulator.offsets import set_offset

if TYPE_CHECKING:
    from tests.simulator.journey import Journey


@dataclass
class Person:
    """Who answers when a run says that one is needed. Called without a reason in the world, that is a fault."""

    journey: Journey
    run_began_ns: int
    """When the run began that calls."""

    def answers(self, error: OffsetGone | TooManyRejects | TargetChanged) -> bool:
        """Whether this is to stay so: then the run has done all that it can."""
        journey = self.journey
        kind = type(error).__name__
        journey.called[kind] += 1
        journey.counts[f"person called: {kind}"] += 1
        if isinstance(error, TooManyRejects):
            return self._bad_record(error)
        if isinstance(error, OffsetGone):
            return self._records_gone(error)
        return self._target_changed(error)

    def _bad_record(self, error: TooManyRejects) -> bool:
        journey = self.journey
        if not any(one.bad for one in journey.given()):
            journey.problems.append(f"called for no bad record: {error}")
        if journey.is_planned.helped:
            journey.revise(tolerance=-1)
        return not journey.is_planned.helped

    def _records_gone(self, error: OffsetGone) -> bool:
        journey = self.journey
        explained = (
            journey.restored
            or any(one.lost for one in journey.given())
            or self._moved_back_into_nothing(error)
            or self._thrown_away_in_haste(error)
            or self._may_have_come_next(error)
        )
        if not explained:
            journey.problems.append(f"called though nothing is lost: {error}")
        if journey.document["on_data_loss"] == "fail":
            journey.revise(on_data_loss="skip")
        else:
            journey.accepts_gaps = True
        return False

    def _moved_back_into_nothing(self, error: OffsetGone) -> bool:
        """Somebody moved the offset of a log back, and somebody else cleared the log away: what the first wanted once
        more can be read no more."""
        moves = Told.by(self.journey.database.connection).moves
        moved_back = {key for key, before, after in moves if after < before}
        cleared = {str(one.path) for one in self.journey.folder.programs if one.closed}
        return any(key in error.where for key in moved_back & cleared)

    def _thrown_away_in_haste(self, error: OffsetGone) -> bool:
        """Rotation threw a file away that was read completely, and that no run had seen to be left: with another one at
        its path nobody knows whether it had grown by then."""
        return any(
            str(program.path) in error.where
            and "replaced" in error.what
            and f": from {_size(file)} to an unknown end" in error.what
            for program in self.journey.folder.programs
            for file in program.files
            if file.hasty
        )

    def _may_have_come_next(self, error: OffsetGone) -> bool:
        """A log was cleared away, and another program's file beside it was made since, and has a name that rotation
        gives: only a person knows whose it is."""
        folder = self.journey.folder
        cleared = [one for one in folder.programs if one.closed and str(one.path) in error.where]
        beside = [one for one in folder.programs if one.foreign]
        return any(
            f"{other.path} may be the file that came next" in error.what and folder.is_younger(other, log)
            for log in cleared
            for other in beside
        )

    def _target_changed(self, error: TargetChanged) -> bool:
        journey = self.journey
        for one in journey.recreated:
            one.said = True
        if "deleted by retention" in error.what:
            self._delivers_again(error)
        elif journey.recreated:
            self._goes_on_in_what_is_there(error)
        elif journey.restored:
            for path in (journey.home / "out").iterdir():
                if ".unsettled" not in path.name and str(path) in error.where:
                    path.rename(path.with_name(f"{path.name}.unsettled-by-hand"))
        else:
            journey.problems.append(f"called though nobody touched the target: {error}")
        return False

    def _delivers_again(self, error: TargetChanged) -> None:
        """Where that would change the order, and every second time, a person finds out what arrived, and the range is
        given up behind it. Then it is over, unless something has expired since."""
        journey = self.journey
        expired = dict(journey.broker.oldest)
        if not expired:
            journey.problems.append(f"called though nothing has expired: {error}")
        place = error.where.rpartition(" from ")[0]
        given_up_ns, expired_then = journey.given_up.get(place, (self.run_began_ns, {}))
        if given_up_ns < self.run_began_ns and expired_then == expired:
            journey.problems.append(f"called again for what was given up: {error}")
        sink = journey.document["sink"]
        if sink["options"]["on_unknown"] == "redeliver" or journey.called["TargetChanged"] % 2:
            self._gives_up(error, behind=True)
            journey.given_up[place] = journey.scheduler.now_ns, expired
        else:
            journey.revise(sink=sink | {"options": sink["options"] | {"on_unknown": "redeliver"}})

    def _goes_on_in_what_is_there(self, error: TargetChanged) -> None:
        sink = self.journey.document["sink"]
        if sink["options"]["on_replaced"] == "continue":
            self._gives_up(error)
        self.journey.revise(sink=sink | {"options": sink["options"] | {"on_replaced": "continue"}})

    def _gives_up(self, error: TargetChanged, *, behind: bool = False) -> None:
        """The open ranges of those partitions that the run has named, or of all; where one begins, or `behind` what has
        arrived of it. One that is worked on is for the next time."""
        journey = self.journey
        assignment, there = journey.ledger.assignment(UID), journey.database.open_ranges()
        open_ones = sorted(one for one in assignment.shares if one.id in there)
        named = [one for one in open_ones if f"range of {one.key} " in error.where]
        for partition in named or open_ones:
            place = journey.database.committed().get(partition.id, 0)
            with suppress(WaybillError):
                at = max(place, self._behind_what_arrived(partition)) if behind else place
                source, sink = journey.source_now(), journey.sink_now()
                there = set_offset(journey, source, assignment, partition, at, abandon=True, sink=sink)
                if not there and at == place:  # another file is at the path by now: from its begin
                    set_offset(journey, source, assignment, partition, 0, abandon=True, sink=sink)

    def _behind_what_arrived(self, partition: Partition) -> int:
        journey = self.journey
        stored = (one for log in journey.broker.queues.values() for one in log if one.partition_id == partition.id)
        last = max(stored, key=lambda one: one.offset, default=None)
        if last is None:
            return 0
        return last.offset + (1 if partition in journey.logs else len(last.message.body) + 1)


def _size(file: LogFile) -> int:
    last = file.lines[-1]
    return last.begin + len(last.text) + last.whole
