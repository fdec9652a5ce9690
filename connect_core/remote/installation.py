"""An installation behind a server, as commands ask it: the values that the use cases give, from the answers of its API.

What the API cannot do yet is refused with what to do instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from connect_core.errors import ConfigError, Retriable
from connect_core.remote.client import ServerClient
from connect_core.remote.values import at, refuse, timed, whole

if TYPE_CHECKING:
    from connect_core.remote.operations import Listening
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
    from connect_core.service.runs import How
    from connect_core.service.source_search import SearchWindow
    from connect_core.service.trying import TryRequest

_TIMES = 10
"""So often a connector is looked at, or its rules are changed, while others change them."""
_AGAIN = "Try again. Where it stays so, a proxy in front of the server leaves out its ETag"
_STEPS = 500
"""Of the history of offsets, at most."""
_STATUS = ("since", "last_settled")
_CONNECTOR = ("since", "created_at", "applied_at")


class RemoteInstallation:
    """An `Installation` of the command line."""

    def __init__(self, client: ServerClient) -> None:
        self._client = client

    # ------------------------------------------------------------------------------------------------- connectors

    def status(self, say: Say) -> Json:
        told = self._client.get("/status")
        told = {"version": told["version"], "server": self._client.server.url, **told}
        timely: Json = timed(told, *_STATUS)
        return timely

    def connectors(self, say: Say) -> list[Json]:
        found: list[Json] = timed(self._client.listed("/connectors", "connectors"), "since")
        return found

    def connector(self, name: str, say: Say, *, revisions: bool) -> Json:
        for _ in range(_TIMES):  # as long as others change it between the two
            told = self._client.get(f"{at(name)}/status")
            document, revision = self._client.answered("GET", at(name))
            if told["revision"] == revision:
                break
        else:
            raise Retriable("Others change this connector all the time", where=f"connector {name}", next_step=_AGAIN)
        first, second = dict[str, object](), dict[str, object]()
        for key, value in timed(told, *_CONNECTOR).items():
            (second if "created_at" in first else first)[key] = value
        shown = {**first, "document": document, **second}
        if revisions:
            found = self._client.listed(f"{at(name)}/history", "revisions")[::-1]
            keys = ("revision", "difference", "who", "why", "applied_at")
            shown["revisions"] = timed([{key: one[key] for key in keys} for one in found], "applied_at")
        return shown

    def set_state(self, name: str, state: Wish) -> Json:
        verb = {"paused": "pause", "running": "resume", "stopped": "stop"}[state]
        return whole(self._client.post(f"{at(name)}/{verb}"), "name", "uid", "before", "state")

    def delete(self, name: str, *, force: bool, agree: Callable[[str], None], say: Say) -> Json:
        """That which was agreed on, and not another one that has the name since."""
        seen = self._client.get(f"{at(name)}/status")
        agree(seen["uid"])
        headers, query = {"If-Match": f'"{seen["revision"]}"'}, {"force": True} if force else {}
        told = self._client.answered("DELETE", at(name), headers=headers, query=query).told
        return whole(told, "name", "uid", "deleted", "notes")

    def snapshot(self, name: str, wish: SnapshotWish) -> Json:
        asked: Json = {"tables": list(wish.tables)} | ({} if wish.where is None else {"where": wish.where})
        return whole(self._client.post(f"{at(name)}/snapshots", asked), "name", "tables")

    def cancel_snapshot(self, name: str, tables: Sequence[str]) -> Json:
        return whole(self._client.post(f"{at(name)}/snapshots/cancel", {"tables": list(tables)}), "name", "tables")

    # ---------------------------------------------------------------------------------------------------- reports

    def runs(self, name: str, *, stream: str, last: int) -> list[Json]:
        found = self._of_each(name, "runs", "runs", last, stream=stream)
        told: list[Json] = timed([*found], "started_at", "ended_at")
        return sorted(told, key=lambda run: (run["started_at"], run["id"]), reverse=True)[:last]

    def receipts(self, name: str, *, run: str, stream: str, last: int) -> list[Json]:
        found = self._of_each(name, "receipts", "receipts", last, run=run, stream=stream)
        told: list[Json] = timed([*found], "settled_at")
        return sorted(told, key=lambda receipt: receipt["settled_at"], reverse=True)[:last]

    def gaps(self, name: str) -> list[Json]:
        from connect_core.service.reports import place_of_gap

        told: list[Json] = timed([*self._of_each(name, "gaps", "gaps", None)], "stored_at")
        return sorted(told, key=place_of_gap, reverse=True)

    def lag(self, name: str) -> list[Json]:
        told = [self._client.get(f"{at(name)}/lag")] if name else self._client.get("/lag")["connectors"]
        found: list[Json] = timed(told, "settled_at", "since")
        return found

    def _of_each(self, name: str, path: str, key: str, last: int | None, **query: str) -> Iterator[Json]:
        """Of a connector, or of all that there are, with its name before the rest."""
        names = [name] if name else [one["name"] for one in self._client.listed("/connectors", "connectors")]
        for one in names:
            for found in self._client.listed(f"{at(one)}/{path}", key, last, **query):
                yield {"connector": one, **found}

    # ---------------------------------------------------------------------------------------------------- offsets

    def offsets(self, name: str, *, stream: str) -> list[Json]:
        found: list[Json] = timed(self._client.get(f"{at(name)}/offsets", stream=stream)["offsets"], "changed_at")
        return found

    def offset_history(self, name: str, *, partition: str, stream: str, last: int) -> list[Json]:
        refuse(last > _STEPS, f"--last {last - 1}")
        told = self._client.get(f"{at(name)}/offsets/history", partition=partition, stream=stream, limit=last)
        found: list[Json] = timed(told["history"], "at")
        return found

    def traced(self, name: str, window: SearchWindow, **named: str) -> Json:
        asked = {**named, "range": list(window.ranges), "from": window.begin, "to": window.end}
        given = {key: value for key, value in asked.items() if value}
        told: Json = timed(self._client.get(f"{at(name)}/trace", **given), "settled_at")
        return told

    def set_offset(
        self, name: str, partition: str, offset: int, *, why: str, abandon: bool, agree: Agree, say: Say
    ) -> Json:
        from connect_core.remote import offsets

        return offsets.moved(self._client, name, partition, offset, why=why, abandon=abandon, agree=agree)

    def undo_offset(self, name: str, partition: str, *, agree: Agree, say: Say) -> Json:
        from connect_core.remote import offsets

        return offsets.undone(self._client, name, partition, agree)

    def exported_offsets(self, name: str, say: Say) -> Json:
        from connect_core.remote import offsets

        return offsets.exported(self._client, name, say)

    def import_offsets(self, name: str, taken: ExportedOffsets, *, why: str, agree: Agree, say: Say) -> Json:
        from connect_core.remote import offsets

        return offsets.imported(self._client, name, taken, why, agree)

    # ------------------------------------------------------------------------------------------------------ looks

    def plan(self, name: str, *, sample: int) -> Json:
        from connect_core.remote import looks

        return looks.plan(self._client, name, sample)

    def log(self, name: str, run: str) -> Json:
        from connect_core.remote import looks

        return looks.log(self._client, name, run)

    def newest(self, name: str, last: int, *, is_topic: bool, connection: str) -> Json:
        from connect_core.remote import looks

        return looks.newest(self._client, name, last, is_topic=is_topic, connection=connection)

    def suggested_fields(self, where: str, last: int, *, connection: str) -> Json:
        from connect_core.remote import looks

        return looks.suggested(self._client, where, last, connection)

    def try_document(self, path: Path, asked: TryRequest) -> Json:
        from connect_core.remote import looks

        return looks.try_document(self._client, path, asked)

    def try_rules(self, name: str, asked: TryRequest) -> Json:
        from connect_core.remote import looks

        return looks.try_rules(self._client, name, asked)

    def group(self, name: str, group: str, *, apply: bool) -> Json:
        from connect_core.remote import looks

        return looks.group(self._client, name, group, apply=apply)

    # -------------------------------------------------------------------------------------------------- documents

    def would_change(self, paths: Sequence[Path], say: Say, *, infer_again: bool) -> list[Json]:
        from connect_core.remote import documents

        refuse(infer_again, "--infer-again")
        return documents.would_change(self._client, paths, say)

    def apply(self, paths: Sequence[Path], *, why: str, say: Say, infer_again: bool, agree: Show) -> list[Json]:
        from connect_core.remote import documents

        refuse(infer_again, "--infer-again")
        return documents.apply(self._client, paths, why, say)

    def check(self, paths: Sequence[Path], say: Say, *, probe: bool) -> list[Json]:
        from connect_core.remote import documents

        return documents.check(self._client, paths, probe=probe)

    def options(self, system: str, key: str) -> list[Json]:
        found = self._client.get(f"/plugins/{system}")["options"]
        told = [one for one in found if key in ("", one["name"])]
        if not told:
            names = ", ".join(sorted({one["name"] for one in found}))
            raise ConfigError(f'{system} has no option "{key}"', next_step=f"It has {names}")
        return told

    def plugins(self, name: str) -> list[Json]:
        from connect_core.service.plugin_names import of_name

        return of_name(self._client.get("/plugins")["plugins"], name)

    def rules(self, name: str) -> list[Json]:
        found: list[Json] = self._client.get(f"{at(name)}/rules")["rules"]
        return found

    def change_rules(self, name: str, change: RuleChange, *, why: str, dry_run: bool) -> Json:
        for _ in range(_TIMES):
            told, revision = self._client.answered("GET", f"{at(name)}/rules")
            asked = {"rules": change(told["rules"]), "why": why}
            headers, query = {"If-Match": f'"{revision}"'}, {"preview": True} if dry_run else {}
            try:
                return self._client.answered("PUT", f"{at(name)}/rules", body=asked, headers=headers, query=query).told
            except Retriable as error:
                if type(error) is not Retriable:
                    raise
        raise Retriable("Others change these rules all the time", where=f"connector {name}", next_step=_AGAIN)

    # ------------------------------------------------------------------------------------------------- operations

    def run(self, name: str, how: How) -> Json:
        from connect_core.remote.operations import done

        refuse(how.window_s, "--window")
        refuse(how.engine, "--engine")
        return done(self._client, name, "runs", {"accept_gaps": how.accept_gaps}, how.listening)

    def begin_backfill(self, name: str, request: Request, how: How) -> Json:
        from connect_core.remote import backfills

        return backfills.begun(self._client, name, request, how)

    def resume_backfill(self, name: str, stream: str, how: How) -> Json:
        from connect_core.remote import backfills

        return backfills.resumed(self._client, name, stream, how)

    def backfills(self, name: str) -> list[Json]:
        from connect_core.remote import backfills

        return backfills.in_order(self._of_each(name, "backfills", "backfills", None))

    def backfill(self, name: str, stream: str) -> Json:
        from connect_core.remote import backfills

        return backfills.shown(self._client, name, stream)

    def cancel_backfill(self, name: str, stream: str, *, why: str) -> tuple[Json, bool]:
        from connect_core.remote import backfills

        return backfills.cancelled(self._client, name, stream, why)

    def verified(
        self, name: str, *, run: str, since_s: float | None, stream: str, share: float, listening: Listening
    ) -> Json:
        from connect_core.remote.operations import done

        asked = {
            "run": run,
            "since": "" if since_s is None else f"{since_s:f}s",
            "stream": stream,
            "share": "" if share >= 1 else f"{share * 100:f}%",
        }
        told: Json = timed(done(self._client, name, "verifications", asked, listening), "settled_at")
        return told

    # ---------------------------------------------------------------------------------------------- dead letters

    def dead_letters(self, name: str, words: Words, *, last: int) -> list[Json]:
        from connect_core.remote import letters

        return letters.listed(self._client, name, words, last)

    def dead_letter(self, name: str, number: int) -> Json:
        from connect_core.remote import letters

        return letters.shown(self._client, name, number)

    def export_letters(self, name: str, words: Words, to: str, out: TextIO) -> int:
        from connect_core.remote import letters

        return letters.export(self._client, name, words, to, out)

    def replay_letters(self, name: str, wanted: Replay, agree: AgreeOnLetters, how: How) -> Json:
        from connect_core.remote import letters

        return letters.replay(self._client, name, wanted, agree, how)

    def discard_letters(self, name: str, words: Words, agree: AgreeOnLetters, *, why: str) -> Json:
        from connect_core.remote import letters

        return letters.give_up(self._client, name, "discard", words, agree, why)

    def erase_letters(self, name: str, words: Words, agree: AgreeOnLetters, *, why: str) -> Json:
        from connect_core.remote import letters

        return letters.give_up(self._client, name, "erase", words, agree, why)

    def redirect_letters(self, name: str, agree: AgreeOnLetters, say: Say, *, why: str) -> Json:
        from connect_core.remote import letters

        return letters.give_up(self._client, name, "redirect", None, agree, why)
