"""The demo from begin to end: Airflow runs two connectors while lines keep coming; one of its task processes is killed;
a backfill runs beside them; both sides are compared. Raises DataError when anything differs.

Every command is a `waybill` subprocess; who is killed is looked up in the ledger.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from connect_core import stack
from connect_core.config import database_url
from connect_core.demo.account import Account, Receipt, add_up
from connect_core.demo.command import Waybill
from connect_core.demo.comparison import Comparison, compare, compare_beginnings
from connect_core.demo.documents import EVERY, HOSTS, Names
from connect_core.demo.feed import Feed
from connect_core.demo.killing import driver, kill, wait_for
from connect_core.demo.screen import Screen
from connect_core.demo.topic import Topic
from connect_core.errors import DataError, Retriable
from connect_core.ledger import Ledger, Run

STEPS = 7
SECONDS = 120.0
"""How long lines come, at least."""

_FIRST_LINES = 3_000
_BULK_LINES = 300_000
_TRICKLE_LINES_PER_S = 1_000
_KILL_TRIES = 3
_ALL = "100000"
_BACKFILL = "first-half"


def tell(home: Path, screen: Screen, seconds: float) -> None:
    names = Names.fresh(home)
    with Feed(names.logs, HOSTS) as feed, Topic(home, names.topic) as topic:
        _Story(home, screen, names, feed, topic).tell(seconds)


class _Story:
    def __init__(self, home: Path, screen: Screen, names: Names, feed: Feed, topic: Topic) -> None:
        self.home, self.screen, self.names, self.feed, self.topic = home, screen, names, feed, topic
        self.waybill = Waybill.here(names.root)

    def tell(self, seconds: float) -> None:
        with self.screen.step("The local stack: RocketMQ, PostgreSQL for the ledger, Spark, Airflow"):
            self.waybill.show("dev", "up")
        with self.screen.step(f"Two connectors: {len(HOSTS)} log files -> topic {self.names.topic} -> one file"):
            self.waybill.show("apply", *self.names.write_documents())
            self.waybill.show("connectors", "resume", self.names.inward)
            self.waybill.show("connectors", "resume", self.names.outward)
        with self.screen.step(f"Airflow runs each of them every {EVERY}; {_TRICKLE_LINES_PER_S:,} lines a second come"):
            self.feed.append(_FIRST_LINES)
            self._wait("the first lines are in the file", lambda: self._target_bytes() > 0)
            self.waybill.show("receipts", self.names.inward)
            self.screen.say(f"The first lines have arrived, {self.screen.seconds:.0f} s after the start.")
            self.feed.start_trickle(_TRICKLE_LINES_PER_S)
        trickle_ends = time.monotonic() + seconds
        with self.screen.step(
            f"{_BULK_LINES:,} lines at once; Airflow's task process is killed in the middle of a range"
        ):
            self._kill_a_task()
        with self.screen.step("A backfill of what has come so far into a second file, beside the live run"):
            moved = self._backfill()
        with self.screen.step("No more lines come; what is left arrives"):
            time.sleep(max(trickle_ends - time.monotonic(), 0))
            self.feed.stop_trickle()
            self._wait("every line is in the topic", lambda: self.topic.messages() >= self.feed.total)
            self._wait("every message is in the file", lambda: self._lines_out() >= self.feed.total)
            self.waybill.show("connectors", "pause", self.names.inward)
            self.waybill.show("connectors", "pause", self.names.outward)
        with self.screen.step("Both sides compared"):
            self._compare(moved)
        self._say_goodbye()

    # ----------------------------------------------------------------------------------------------------------- steps

    def _kill_a_task(self) -> None:
        """A run that was through before it could be hit is no failure: more lines come, and the next one is hit."""
        with Ledger.open(database_url(self.home)) as ledger:
            for _ in range(_KILL_TRIES):
                pid = self._task_in_mid_range(ledger)
                if pid and kill(pid):
                    killed = time.monotonic()
                    self.screen.say(f"Killed process {pid}, Airflow's task, with SIGKILL.")
                    self._tell_of_the_retry(ledger, killed)
                    return
        raise Retriable(
            f"no task could be killed in mid-range in {_KILL_TRIES} tries", next_step="Start the demo again"
        )

    def _task_in_mid_range(self, ledger: Ledger) -> int | None:
        before = self.topic.messages()
        self.feed.append(_BULK_LINES)
        return wait_for(lambda: driver(ledger, self.names.inward) if self.topic.messages() > before + 5_000 else None)

    def _tell_of_the_retry(self, ledger: Ledger, killed: float) -> None:
        uid = ledger.connector(self.names.inward).uid

        def retried() -> Run | None:
            """The attempt behind the lost one, once it is done."""
            runs = sorted((run for run in ledger.runs(uid, limit=200) if run.stream == "live"), key=lambda run: run.id)
            lost = [run for run in runs if run.state == "lost"]
            behind = [run for run in runs if lost and run.id > lost[-1].id and run.state == "done"]
            return behind[0] if behind else None

        done = wait_for(retried)
        if done is None:
            raise Retriable("Airflow has not tried again in time", next_step="Look at its page; start the demo again")
        already = (done.summary or {}).get("already", 0)
        self.waybill.show("runs", self.names.inward, "--last", "4")
        self.screen.say(
            f"Airflow's retry was done {time.monotonic() - killed:.1f} s after the kill: it found {already:,} records"
            " there already and sent the others."
        )

    def _backfill(self) -> int:
        """Returns how many records it moved."""
        until = datetime.now(UTC).isoformat(timespec="seconds")
        self.waybill.show(
            *("backfill", self.names.outward, "--from", "1d", "--to", until, "--id", _BACKFILL),
            *("--sink", f"path={self.names.first_half}"),
        )
        return self._account(self.names.outward, f"backfill-{_BACKFILL}").read

    def _compare(self, moved: int) -> None:
        seen = compare(self.feed.files, self.names.target)
        inward, outward = self._account(self.names.inward), self._account(self.names.outward)
        messages, fed = self.topic.messages(), self.feed.total
        self.screen.table(("", "logs -> topic", "topic -> file"), _rows(seen, inward, outward, messages, fed))
        self.screen.say(f"SHA-256, lines sorted   of the logs {seen.source_sha256}")
        self.screen.say(f"                       of the file {seen.target_sha256}")
        faults = [*seen.faults, *inward.faults, *outward.faults, *_differences(seen, inward, outward, messages, fed)]
        log_bytes = sum(path.stat().st_size for path in self.feed.files)
        if sum(inward.ends.values()) != log_bytes:
            faults.append(f"receipts cover {sum(inward.ends.values())} of {log_bytes} bytes of the logs")
        half = compare_beginnings(self.feed.files, self.names.first_half)
        self.screen.say(f"The backfill's file has the first {half.lines:,} lines of the logs, each once and in order.")
        faults += half.faults
        if half.lines != moved:
            faults.append(f"the backfill's receipts tell of {moved} records, its file has {half.lines} lines")
        if faults:
            raise DataError("the two sides differ: " + "; ".join(faults), where=str(self.names.folder))

    def _say_goodbye(self) -> None:
        running = stack.load(self.home)
        self.screen.say(f"Everything arrived once and in order ({self.screen.seconds:.0f} s).")
        if running is not None:
            self.screen.say(
                f"Airflow's page: {running.airflow_url}, log in as {running.airflow_user}; the password is in"
                f" {running.airflow_password_file}"
            )
        self.screen.paste(
            "Five commands to paste; the stack stays up until `make stop`, the connectors are paused:",
            [
                self.waybill.pasteable("receipts", self.names.inward),
                self.waybill.pasteable("runs", self.names.outward),
                self.waybill.pasteable("backfills", "list", self.names.outward),
                self.waybill.pasteable("peek", self.names.topic, "--last", "3"),
                self.waybill.pasteable("lag", self.names.inward),
            ],
        )

    # ----------------------------------------------------------------------------------------------------------- looks

    def _wait(self, for_what: str, holds: Callable[[], bool]) -> None:
        if not wait_for(holds):
            raise Retriable(f"not in time: {for_what}", next_step="Look at Airflow's page; start the demo again")

    def _account(self, connector: str, stream: str = "live") -> Account:
        told = self.waybill.ask("receipts", connector, "--stream", stream, "--last", _ALL)
        receipts: list[Receipt] = told["receipts"]
        return add_up(receipts)

    def _lines_out(self) -> int:
        return self._account(self.names.outward).read

    def _target_bytes(self) -> int:
        return self.names.target.stat().st_size if self.names.target.exists() else 0


def _rows(seen: Comparison, inward: Account, outward: Account, messages: int, fed: int) -> list[tuple[str, str, str]]:
    return [
        ("given", f"{fed:,} lines", f"{messages:,} messages"),
        ("arrived", f"{messages:,} messages", f"{seen.target_lines:,} lines"),
        ("order within each log", "", "differs" if seen.faults else "the same"),
        ("receipts", f"{inward.receipts}", f"{outward.receipts}"),
        ("  read", f"{inward.read:,}", f"{outward.read:,}"),
        ("  = delivered", f"{inward.delivered:,}", f"{outward.delivered:,}"),
        ("  + found there already", f"{inward.already:,}", f"{outward.already:,}"),
        ("  surplus", f"{inward.surplus:,}", f"{outward.surplus:,}"),
        ("  identities", _hold(inward), _hold(outward)),
    ]


def _differences(seen: Comparison, inward: Account, outward: Account, messages: int, fed: int) -> list[str]:
    figures = {
        "lines fed": fed,
        "lines in the logs": seen.source_lines,
        "messages in the topic": messages,
        "lines in the file": seen.target_lines,
        "records read from the logs": inward.read,
        "records read from the topic": outward.read,
    }
    faults = [] if len(set(figures.values())) == 1 else [f"{name}: {value}" for name, value in figures.items()]
    if seen.source_sha256 != seen.target_sha256:
        faults.append("the SHA-256 of the sorted lines differ")
    return faults


def _hold(account: Account) -> str:
    return "do not hold" if account.faults else "all hold"
