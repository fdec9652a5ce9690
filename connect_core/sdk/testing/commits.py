"""What a `CommitSink` promises beyond what every sink with markers does: inherit it, with a `target` as there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import pytest

from connect_core.errors import Fenced, Unreachable
from connect_core.sdk.testing.driving import attempt, limit
from connect_core.sdk.testing.kits import ROWS, MarkerContract
from connect_core.sdk.testing.sink_content import ContentCase
from connect_core.sdk.testing.sinks import SettledState, numbers


class CommitCase(ContentCase, Protocol):
    def commit_as_others(self) -> None:
        """Another program commits to the target; it adds no rows."""


class CommitContract(MarkerContract):
    """Whatever holds of a marker in a transaction holds of one in a commit."""

    places = ("stage", "commit")

    def test_nothing_is_seen_before_the_commit(self, target: CommitCase) -> None:
        ledger = SettledState(target)
        with target.sink().writer(attempt(1, ledger.uid), ledger.planned(target.sink(), ROWS)) as writer:
            writer.write(ledger.rows(0, ROWS), limit())
            assert target.count() == 0
            writer.flush(limit())
        assert target.content() == numbers(ROWS)

    def test_what_others_commit_changes_nothing(self, target: CommitCase) -> None:
        ledger = SettledState(target)
        for end in (10, 20):
            target.commit_as_others()
            ledger.attempt(end, settle_at=end)
        ledger.attempt(30, settle_at=None)
        target.commit_as_others()
        ledger.attempt(30, settle_at=30)
        assert target.content() == numbers(30)

    def test_a_commit_that_comes_second_is_tried_again(self, target: CommitCase) -> None:
        ledger = SettledState(target)
        with target.sink().writer(attempt(1, ledger.uid), ledger.planned(target.sink(), ROWS)) as writer:
            writer.write(ledger.rows(0, ROWS), limit())
            target.commit_as_others()
            writer.flush(limit())
        assert target.content() == numbers(ROWS)

    def test_a_commit_whose_answer_was_lost_is_not_made_twice(self, target: CommitCase) -> None:
        ledger = SettledState(target)
        sink = self._losing_an_answer(target)
        with sink.writer(attempt(1, ledger.uid), ledger.planned(target.sink(), ROWS)) as writer:
            writer.write(ledger.rows(0, ROWS), limit())
            assert writer.flush(limit()).records == ROWS
            assert writer.flush(limit()).records == ROWS
        assert target.content() == numbers(ROWS)

    def test_two_attempts_at_once_commit_once(self, target: CommitCase) -> None:
        """Without a look by either of them: whoever commits second sees another marker than it has begun with."""
        ledger = SettledState(target)
        item = ledger.planned(target.sink(), ROWS)
        with (
            target.sink().writer(attempt(1, ledger.uid), item) as first,
            target.sink().writer(attempt(2, ledger.uid), item) as second,
        ):
            for writer in (first, second):
                writer.write(ledger.rows(0, ROWS), limit())
            second.flush(limit())
            with pytest.raises(Fenced):
                first.flush(limit())
        assert target.content() == numbers(ROWS)

    def _losing_an_answer(self, target: CommitCase) -> Any:
        """A sink whose first commit is made, and whose answer to it is lost."""
        sink: Any = target.sink()
        connect = sink.connect
        lost: list[bool] = []

        @contextmanager
        def losing() -> Iterator[Any]:
            with connect() as connection:
                commit = connection.commit

                def commit_once(*values: Any) -> None:
                    commit(*values)
                    if not lost:
                        lost.append(True)
                        raise Unreachable("The answer was lost")

                connection.commit = commit_once
                yield connection

        sink.connect = losing
        return sink
