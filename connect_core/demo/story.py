"""The demo from begin to end: feed, run, kill, run on, compare. Raises DataError when anything differs.

Every run is a `waybill` subprocess. Nothing here knows how a run works but for the lock files that tell its workers.
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

from connect_core.demo.account import Account, Receipt, add_up
from connect_core.demo.command import Waybill
from connect_core.demo.comparison import Comparison, compare
from connect_core.demo.documents import HOSTS, Names
from connect_core.demo.feed import Feed
from connect_core.demo.killing import kill, wait_for, workers
from connect_core.demo.screen import Screen
from connect_core.demo.topic import Topic
from connect_core.errors import DataError, Retriable
from connect_core.stack import DATA_PARTS

STEPS = 7

_FIRST_LINES = 3_000
_BULK_LINES = 300_000
_TRICKLE_LINES_PER_S = 1_000
_KILL_TRIES = 3
_ALL = "100000"
_ONLY = tuple(word for part in DATA_PARTS for word in ("--only", part))
"""Runs from the command line need no Airflow."""

Victim = Callable[[subprocess.Popen[bytes]], int | None]


def tell(home: Path, screen: Screen) -> None:
    names = Names.fresh(home)
    with Feed(names.logs, HOSTS) as feed, Topic(home, names.topic) as topic:
        _Story(home, screen, names, feed, topic).tell()


class _Story:
    def __init__(self, home: Path, screen: Screen, names: Names, feed: Feed, topic: Topic) -> None:
        self.home, self.screen, self.names, self.feed, self.topic = home, screen, names, feed, topic
        self.waybill = Waybill.here(names.root)

    def tell(self) -> None:
        with self.screen.step("The local stack: RocketMQ, PostgreSQL for the ledger, Spark"):
            self.waybill.show("dev", "up", *_ONLY)
        with self.screen.step(f"Two connectors: {len(HOSTS)} log files -> topic {self.names.topic} -> one file"):
            self.waybill.show("apply", *self.names.write_documents())
        with self.screen.step(f"A first run of each, {_FIRST_LINES:,} lines"):
            self.feed.append(_FIRST_LINES)
            self.waybill.run(self.names.inward)
            self.waybill.show("receipts", self.names.inward)
            self.screen.say(f"The first receipts, {self.screen.seconds:.0f} s after the start.")
            self.waybill.run(self.names.outward)
        self.feed.start_trickle(_TRICKLE_LINES_PER_S)
        with self.screen.step(f"{_BULK_LINES:,} lines more while others keep coming; a worker of the run is killed"):
            self._kill_a_worker()
        with self.screen.step("The topic to the file; the `waybill run` process is killed"):
            self._kill_a_driver()
        with self.screen.step("The logs fall silent; both connectors run once more"):
            self.feed.stop_trickle()
            self.waybill.run(self.names.inward)
            self.waybill.run(self.names.outward)
        with self.screen.step("Both sides compared"):
            self._compare()
        self._say_goodbye()

    # ----------------------------------------------------------------------------------------------------------- steps

    def _kill_a_worker(self) -> None:
        def more_lines() -> None:
            self.feed.append(_BULK_LINES)

        self._kill_in_mid_range(self.names.inward, more_lines, self.topic.messages, self._some_worker)
        self.screen.say(f"{self.topic.messages():,} of {self.feed.total:,} lines are in the topic. The same run again:")
        before = self._account(self.names.inward).already
        self.waybill.run(self.names.inward)
        found = self._account(self.names.inward).already - before
        self.screen.say(f"The retry found {found:,} records there already and sent the others.")

    def _kill_a_driver(self) -> None:
        def more_messages() -> None:
            waiting = self.topic.messages() - self._account(self.names.outward).read
            if waiting < _BULK_LINES // 2:  # the run before was through before it could be killed
                self.feed.append(_BULK_LINES)
                self.waybill.run(self.names.inward)

        self._kill_in_mid_range(self.names.outward, more_messages, self._target_bytes, lambda run: run.pid)
        self.screen.say(f"{self._target_bytes():,} bytes are in the file. The same run again:")
        self.waybill.run(self.names.outward)
        aside = sum(path.stat().st_size for path in self._set_aside())
        self.screen.say(f"The retry set {aside:,} bytes aside that no receipt covered, and wrote them again.")

    def _compare(self) -> None:
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
        if faults:
            raise DataError("the two sides differ: " + "; ".join(faults), where=str(self.names.folder))

    def _say_goodbye(self) -> None:
        self.screen.say(f"Everything arrived once and in order ({self.screen.seconds:.0f} s).")
        self.screen.paste(
            "Five commands to paste; the stack stays up until `make stop`:",
            [
                self.waybill.pasteable("receipts", self.names.inward),
                self.waybill.pasteable("runs", self.names.outward),
                self.waybill.pasteable("peek", self.names.topic, "--last", "3"),
                self.waybill.pasteable("lag", self.names.inward),
                self.waybill.pasteable("offsets", "history", self.names.outward),
            ],
        )

    # --------------------------------------------------------------------------------------------------------- killing

    def _kill_in_mid_range(
        self, connector: str, prepare: Callable[[], None], moved: Callable[[], int], victim: Victim
    ) -> None:
        """Starts a run and kills `victim` as soon as `moved` shows that records are on their way.

        A run that was through before it could be hit is no failure: `prepare` is asked for more, and it starts again.
        """
        for _ in range(_KILL_TRIES):
            prepare()
            with self.waybill.start("run", connector) as run:
                pid = _hit(run, moved, victim)
                status = run.wait()
            self.screen.after_kill()
            if pid is not None and status != 0:
                self.screen.say(f"Killed {pid} with SIGKILL; the run ended with {_ending(status)}.")
                return
        raise Retriable(f"no run could be killed in mid-range in {_KILL_TRIES} tries", next_step="Start the demo again")

    def _some_worker(self, run: subprocess.Popen[bytes]) -> int | None:
        return min(workers(self.home / "locks", run.pid), default=None)

    # ----------------------------------------------------------------------------------------------------------- looks

    def _account(self, connector: str) -> Account:
        receipts: list[Receipt] = self.waybill.ask("receipts", connector, "--last", _ALL)["receipts"]
        return add_up(receipts)

    def _target_bytes(self) -> int:
        return self.names.target.stat().st_size if self.names.target.exists() else 0

    def _set_aside(self) -> list[Path]:
        return sorted(self.names.folder.glob(f"{self.names.target.name}.unsettled-*"))


def _hit(run: subprocess.Popen[bytes], moved: Callable[[], int], victim: Victim) -> int | None:
    """The process that was killed in mid-range; None when the run ended before."""
    before = moved()
    pid = wait_for(lambda: victim(run) if moved() > before else None, lambda: run.poll() is None)
    return pid if pid is not None and kill(pid) else None


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


def _ending(status: int) -> str:
    return f"signal {signal.Signals(-status).name}" if status < 0 else f"exit code {status}"
