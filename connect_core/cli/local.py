"""The installation of this home: each command opens its ledger and calls one use case."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from connect_core.service.opened import reading, working

if TYPE_CHECKING:
    from connect_core.sdk.plugin import SnapshotWish
    from connect_core.sdk.values import Json
    from connect_core.service.backfill_runs import Request
    from connect_core.service.connectors import Wish
    from connect_core.service.dead_letters import Agree as AgreeOnLetters
    from connect_core.service.dead_letters import Words
    from connect_core.service.documents import Show
    from connect_core.service.letter_replays import Replay
    from connect_core.service.offset_exports import ExportedOffsets
    from connect_core.service.offsets import Agree
    from connect_core.service.opened import Say
    from connect_core.service.rules import RuleChange
    from connect_core.service.run_report import RunListener
    from connect_core.service.runs import How
    from connect_core.service.source_search import SearchWindow
    from connect_core.service.trying import TryRequest


class LocalInstallation:
    """An `Installation`. What a use case needs is imported when it is called: a command is quick."""

    def status(self, say: Say) -> Json:
        from connect_core.service import health

        return health.status(say)

    def connectors(self, say: Say) -> list[Json]:
        from connect_core.service.connectors import listed

        with reading() as opened:
            return listed(opened, say)

    def connector(self, name: str, say: Say, *, revisions: bool) -> Json:
        from connect_core.service.connectors import shown

        with reading() as opened:
            return shown(opened, opened.ledger.connector(name), say, revisions=revisions)

    def set_state(self, name: str, state: Wish) -> Json:
        from connect_core.service.connectors import set_state

        with reading() as opened:
            return set_state(opened, name, state)

    def delete(self, name: str, *, force: bool, agree: Callable[[str], None], say: Say) -> Json:
        from connect_core.service.deletions import delete

        with working() as opened:
            return delete(opened, name, force=force, agree=agree, say=say)

    def snapshot(self, name: str, wish: SnapshotWish) -> Json:
        from connect_core.service import snapshots

        with reading() as opened:
            return snapshots.ask(opened, name, wish)

    def cancel_snapshot(self, name: str, tables: Sequence[str]) -> Json:
        from connect_core.service import snapshots

        with reading() as opened:
            return snapshots.cancel(opened, name, tables)

    def runs(self, name: str, *, stream: str, last: int) -> list[Json]:
        from connect_core.service import reports

        with reading() as opened:
            return reports.runs(opened, name, stream=stream, last=last)

    def receipts(self, name: str, *, run: str, stream: str, last: int) -> list[Json]:
        from connect_core.service import reports

        with reading() as opened:
            return reports.receipts(opened, name, run=run, stream=stream, last=last)

    def gaps(self, name: str) -> list[Json]:
        from connect_core.service import reports

        with reading() as opened:
            return reports.gaps(opened, name)

    def lag(self, name: str) -> list[Json]:
        from connect_core.service.lag import lag

        with reading() as opened:
            return lag(opened, name)

    def offsets(self, name: str, *, stream: str) -> list[Json]:
        from connect_core.service.offsets import committed

        with reading() as opened:
            return committed(opened, name, stream=stream)

    def offset_history(self, name: str, *, partition: str, stream: str, last: int) -> list[Json]:
        from connect_core.service.offsets import history

        with reading() as opened:
            return history(opened, name, partition=partition, stream=stream, last=last)

    def traced(self, name: str, window: SearchWindow, **named: str) -> Json:
        from connect_core.service.tracing import traced

        with reading() as opened:
            return traced(opened, name, window=window, **named)

    def set_offset(
        self, name: str, partition: str, offset: int, *, why: str, abandon: bool, agree: Agree, say: Say
    ) -> Json:
        from connect_core.service.offsets import set_offset

        with working() as opened:
            return set_offset(opened, name, partition, offset, why=why, abandon=abandon, agree=agree, say=say)

    def undo_offset(self, name: str, partition: str, *, agree: Agree, say: Say) -> Json:
        from connect_core.service import offsets

        with working() as opened:
            return offsets.undo(opened, name, partition, agree=agree, say=say)

    def exported_offsets(self, name: str, say: Say) -> Json:
        from connect_core.service.offset_exports import exported

        with reading() as opened:
            return exported(opened, name, say)

    def import_offsets(self, name: str, taken: ExportedOffsets, *, why: str, agree: Agree, say: Say) -> Json:
        from connect_core.service.offset_exports import imported

        with working() as opened:
            return imported(opened, name, taken, why=why, agree=agree, say=say)

    def plan(self, name: str, *, sample: int) -> Json:
        from connect_core.service import lag

        with reading() as opened:
            return lag.plan_with_sample(opened, name, sample) if sample else lag.plan(opened, name)

    def log(self, name: str, run: str) -> Json:
        from connect_core.service.logs import log_of

        with reading() as opened:
            return log_of(opened, name, run)

    def newest(self, name: str, last: int, *, is_topic: bool, connection: str) -> Json:
        from connect_core.service import peeking

        return peeking.newest(name, last, is_topic=is_topic, connection=connection)

    def suggested_fields(self, where: str, last: int, *, connection: str) -> Json:
        from connect_core.service import fields

        return fields.suggested(where, last, fields.of_topic(connection))

    def try_document(self, path: Path, asked: TryRequest) -> Json:
        from connect_core.service import trying

        tried = trying.written(path)
        return {"document": tried.document.name, "records": trying.became(tried, asked)}

    def try_rules(self, name: str, asked: TryRequest) -> Json:
        from connect_core.service import trying

        with reading() as opened:
            return {"connector": name, "records": trying.became(trying.applied(opened, name), asked)}

    def group(self, name: str, group: str, *, apply: bool) -> Json:
        from connect_core.service import groups

        with reading() as opened:
            return groups.translate(opened, name, group, apply=apply)

    def would_change(self, paths: Sequence[Path], say: Say, *, infer_again: bool) -> list[Json]:
        from connect_core.service import documents

        return documents.would_change(paths, say, infer_again=infer_again)

    def apply(self, paths: Sequence[Path], *, why: str, say: Say, infer_again: bool, agree: Show) -> list[Json]:
        from connect_core.service import documents

        return documents.apply(paths, why=why, say=say, infer_again=infer_again, agree=agree)

    def check(self, paths: Sequence[Path], say: Say, *, probe: bool) -> list[Json]:
        from connect_core.service import documents

        return documents.check(paths, say, probe=probe)

    def options(self, system: str, key: str) -> list[Json]:
        from connect_core.service import documents

        return documents.options(system, key)

    def plugins(self, name: str) -> list[Json]:
        from connect_core.service import plugins

        return plugins.listed(name)

    def rules(self, name: str) -> list[Json]:
        from connect_core.service import rules

        with reading() as opened:
            return rules.listed(opened, name)

    def change_rules(self, name: str, change: RuleChange, *, why: str, dry_run: bool) -> Json:
        from connect_core.service import rules

        with reading() as opened:
            return rules.changed(opened, name, change, why=why, dry_run=dry_run)

    def run(self, name: str, how: How) -> Json:
        from connect_core.service.runs import run

        with working() as opened:
            return run(opened, name, how)

    def begin_backfill(self, name: str, request: Request, how: How) -> Json:
        from connect_core.service import backfill_runs

        with working() as opened:
            return backfill_runs.begin(opened, name, request, how)

    def resume_backfill(self, name: str, stream: str, how: How) -> Json:
        from connect_core.service import backfill_runs

        with working() as opened:
            return backfill_runs.resume(opened, name, stream, how)

    def backfills(self, name: str) -> list[Json]:
        from connect_core.service.backfills import listed

        with reading() as opened:
            return listed(opened, name)

    def backfill(self, name: str, stream: str) -> Json:
        from connect_core.service.backfills import shown

        with reading() as opened:
            return shown(opened, name, stream)

    def cancel_backfill(self, name: str, stream: str, *, why: str) -> tuple[Json, bool]:
        from connect_core.service.backfills import cancel

        with reading() as opened:
            return cancel(opened, name, stream, why=why)

    def verified(
        self,
        name: str,
        *,
        run: str,
        since_s: float | None,
        stream: str,
        share: float,
        listening: Callable[[], AbstractContextManager[RunListener]],
    ) -> Json:
        """Nobody listens: a target is read again in one go."""
        from connect_core.service import verifying

        with reading() as opened:
            return verifying.verified(opened, name, run=run, since_s=since_s, stream=stream, share=share)

    def dead_letters(self, name: str, words: Words, *, last: int) -> list[Json]:
        from connect_core.service import dead_letters

        with reading() as opened:
            return dead_letters.listed(opened, name, words, last=last)

    def dead_letter(self, name: str, number: int) -> Json:
        from connect_core.service import dead_letters

        with reading() as opened:
            return dead_letters.shown(opened, name, number)

    def export_letters(self, name: str, words: Words, to: str, out: TextIO) -> int:
        from connect_core.service import dead_letters

        with reading() as opened:
            return dead_letters.export(opened, name, words, to, out)

    def discard_letters(self, name: str, words: Words, agree: AgreeOnLetters, *, why: str) -> Json:
        from connect_core.service import dead_letters

        with reading() as opened:
            return dead_letters.discard(opened, name, words, agree, why=why)

    def erase_letters(self, name: str, words: Words, agree: AgreeOnLetters, *, why: str) -> Json:
        from connect_core.service import dead_letters

        with reading() as opened:
            return dead_letters.erase(opened, name, words, agree, why=why)

    def redirect_letters(self, name: str, agree: AgreeOnLetters, say: Say, *, why: str) -> Json:
        from connect_core.service.letter_redirects import redirect

        with working() as opened:
            return redirect(opened, name, agree, say, why=why)

    def replay_letters(self, name: str, wanted: Replay, agree: AgreeOnLetters, how: How) -> Json:
        from connect_core.service.letter_replays import replay

        with working() as opened:
            return replay(opened, name, wanted, agree, how)
