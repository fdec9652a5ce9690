"""The demo from begin to end: Airflow runs four connectors while lines and messages of devices keep coming; two of its
task processes are killed; a backfill runs beside them; payments are changed, and one that is rejected is replayed; the
changes of a table are followed by a run that is killed, too; both sides are compared. Raises DataError when anything
differs.

Every command is a `waybill` subprocess; who is killed, and what has arrived, is looked up in the ledger.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from connect_core import stack
from connect_core.config import database_url
from connect_core.demo import payments, verdict
from connect_core.demo.account import Account, Receipt, add_up
from connect_core.demo.command import Waybill
from connect_core.demo.devices import COUNT, Devices, Listener
from connect_core.demo.documents import HOSTS, Names
from connect_core.demo.feed import Feed
from connect_core.demo.killing import driver, kill, wait_for
from connect_core.demo.orders import ROWS, SOURCE, TARGET, Orders
from connect_core.demo.screen import Screen
from connect_core.demo.topic import Topic
from connect_core.errors import DataError, Retriable
from connect_core.ledger import Ledger, Run
from connect_core.sdk.values import LIVE

STEPS = 10
SECONDS = 120.0
"""How long lines come, at least."""

_FIRST_LINES = 3_000
_BULK_LINES = 300_000
_MID_RANGE = 2_000
"""So many of its lines are in the topic when the task of a range is killed."""
_TRICKLE_LINES_PER_S = 1_000
_DEVICE_MESSAGES_PER_S = 400
_KILL_TRIES = 3
_ALL = "100000"
_BACKFILL = "first-half"


def tell(home: Path, screen: Screen, seconds: float) -> None:
    names = Names.fresh(home)
    with ExitStack() as open_ones:
        feed = open_ones.enter_context(Feed(names.logs, HOSTS))
        of_them = (names.topic, names.device_topic, names.orders)
        topics = [open_ones.enter_context(Topic(home, name)) for name in of_them]
        _Story(home, screen, names, feed, topics, open_ones).tell(seconds)


class _Story:
    def __init__(
        self, home: Path, screen: Screen, names: Names, feed: Feed, topics: Sequence[Topic], open_ones: ExitStack
    ) -> None:
        self.home, self.screen, self.names, self.feed = home, screen, names, feed
        self.topic, self.of_devices, self.of_orders = topics
        self.open_ones = open_ones
        self.waybill = Waybill.here(names.root)

    @cached_property
    def ledger(self) -> Ledger:
        """Of the local stack, which must run."""
        return self.open_ones.enter_context(Ledger.open(database_url(self.home)))

    def tell(self, seconds: float) -> None:
        with self.screen.step("The local stack: RocketMQ, PostgreSQL for the ledger, Spark, Airflow; an MQTT broker"):
            self.waybill.show("dev", "up")
            self.waybill.show("dev", "up", "--only", stack.MQTT_BROKER)
        with self.screen.step(
            f"Four connectors: {len(HOSTS)} log files -> topic {self.names.topic} -> one file; "
            f"{COUNT} devices -> topic {self.names.device_topic} -> another MQTT topic"
        ):
            self.waybill.show("apply", *self.names.write_documents())
            self._turn("resume")
        with self.screen.step(f"Airflow runs them every ten seconds; {_TRICKLE_LINES_PER_S:,} lines a second come"):
            self.feed.append(_FIRST_LINES)
            self._wait("the first lines are in the file", lambda: self._target_bytes() > 0)
            self.waybill.show("receipts", self.names.inward)
            self.screen.say(f"The first lines have arrived, {self.screen.seconds:.0f} s after the start.")
            self.feed.start_trickle(_TRICKLE_LINES_PER_S)
        trickle_ends = time.monotonic() + seconds
        with self.screen.step(
            f"{_BULK_LINES:,} lines at once; Airflow's task process is killed in the middle of a range"
        ):
            lines_killed = self._kill_a_task(self.names.inward, self._bulk)
        devices, listener = self._devices()
        with self.screen.step(
            f"{COUNT} devices publish {_DEVICE_MESSAGES_PER_S} messages a second; the task that receives them is killed"
            " too; Airflow tries both again"
        ):
            devices.start(_DEVICE_MESSAGES_PER_S)
            devices_killed = self._kill_a_task(self.names.devices_in, self._some_device_messages)
            self._tell_of_the_retry(self.names.inward, lines_killed)
            self._tell_of_the_retry(self.names.devices_in, devices_killed)
        with self.screen.step("A backfill of what has come so far into a second file, beside the live run"):
            moved = self._backfill()
        with self.screen.step(
            "Payments get typed fields, and their cards are masked; one that is rejected is replayed"
        ):
            payments_differ = self._payments()
        with self.screen.step(
            "A table: its rows change while a run follows them, which is killed; the changes go on to another table"
        ):
            orders = self._orders()
        with self.screen.step("No more lines come; what is left arrives"):
            time.sleep(max(trickle_ends - time.monotonic(), 0))
            self.feed.stop_trickle()
            devices.stop()
            self._wait("every line is in the topic", lambda: self.topic.messages() >= self.feed.total)
            self._wait("every message is in the file", lambda: self._settled(self.names.outward) >= self.feed.total)
            self._wait("the listener has heard every device", lambda: set(listener.heard) >= set(devices.said))
            self._turn("pause")
        with self.screen.step("Both sides compared"):
            if faults := [*self._verdict(moved, devices, listener, orders), *payments_differ]:
                raise DataError("The two sides differ: " + "; ".join(faults), where=str(self.names.folder))
        self._say_goodbye()

    # ----------------------------------------------------------------------------------------------------------- steps

    def _turn(self, to: str) -> None:
        """Airflow's switches of the four."""
        for name in self.names.connectors:
            self.waybill.show("connectors", to, name)

    def _devices(self) -> tuple[Devices, Listener]:
        """Before anybody publishes, the session of the connector must be at the broker: its first run makes it."""
        uid = self.ledger.connector(self.names.devices_in).uid
        self._wait("the connector has subscribed", lambda: any(run.state == "done" for run in self.ledger.runs(uid)))
        running = stack.load(self.home)
        assert running is not None
        listener = self.open_ones.enter_context(Listener(running.mqtt_port, self.names.heard))
        return self.open_ones.enter_context(Devices(running.mqtt_port, self.names.said)), listener

    def _kill_a_task(self, connector: str, some_come: Callable[[], Callable[[], bool]]) -> datetime:
        """Returns when. `some_come` makes work, and gives what tells that it is being done. A run that was through
        before it could be hit is no failure: more comes, and the next one is hit."""
        for _ in range(_KILL_TRIES):
            pid = self._driver_in_mid_range(connector, some_come())
            if pid and kill(pid):
                self.screen.say(f"Killed process {pid}, Airflow's task, with SIGKILL.")
                return datetime.now(UTC)
        raise Retriable(
            f"No task could be killed in mid-range in {_KILL_TRIES} tries", next_step="Start the demo again"
        )

    def _driver_in_mid_range(self, connector: str, in_mid_range: Callable[[], bool]) -> int | None:
        return wait_for(lambda: driver(self.ledger, connector) if in_mid_range() else None)

    def _bulk(self) -> Callable[[], bool]:
        """Its lines are being moved when some are in the topic that no receipt tells of."""
        uid = self.ledger.connector(self.names.inward).uid
        self.feed.append(_BULK_LINES)

        def in_mid_range() -> bool:
            there = self.topic.messages()
            receipts = [one.receipt for one in self.ledger.receipts(uid, stream=LIVE, limit=None)]
            return there > sum(one.delivered + one.deduplicated for one in receipts) + _MID_RANGE

        return in_mid_range

    def _some_device_messages(self) -> Callable[[], bool]:
        before = self.of_devices.messages()
        return lambda: self.of_devices.messages() > before + COUNT

    def _tell_of_the_retry(self, connector: str, killed: datetime) -> None:
        uid = self.ledger.connector(connector).uid

        def retried() -> Run | None:
            """The attempt behind the lost one, once it is done."""
            live = [run for run in self.ledger.runs(uid, limit=200) if run.stream == LIVE]
            runs = sorted(live, key=lambda run: run.id)
            lost = [run for run in runs if run.state == "lost"]
            behind = [run for run in runs if lost and run.id > lost[-1].id and run.state == "done"]
            return behind[0] if behind else None

        done = wait_for(retried)
        if done is None or done.ended_at is None:
            raise Retriable("Airflow has not tried again in time", next_step="Look at its page; start the demo again")
        already = (done.summary or {}).get("deduplicated", 0)
        self.waybill.show("runs", connector, "--last", "4")
        took_s = (done.ended_at - killed).total_seconds()
        self.screen.say(
            f"Airflow's retry was done {took_s:.1f} s after the kill: it found {already:,} records"
            " already in the target and sent the others."
        )

    def _backfill(self) -> int:
        """Returns how many records it moved."""
        until = datetime.now(UTC).isoformat(timespec="seconds")
        self.waybill.show(
            *("backfill", self.names.outward, "--from", "1d", "--to", until, "--id", _BACKFILL),
            *("--sink", f"path={self.names.first_half}"),
        )
        return self._account(self.names.outward, f"backfill-{_BACKFILL}").read

    def _payments(self) -> list[str]:
        """Returns what is wrong with what arrived."""
        name = self.names.payments
        payments.write(self.names.payment_lines)
        self.waybill.show("apply", self.names.write_payments("decimal(12,2)"))
        self.waybill.show("run", name)
        self.waybill.show("dead-letters", "list", name)
        self.screen.say(
            "One amount is no decimal. The document is corrected, and what was rejected is sent through it:"
        )
        self.waybill.show("apply", self.names.write_payments("text"))
        self.waybill.show("dead-letters", "replay", name, "--yes")
        self.waybill.show("peek", name, "--last", str(payments.PAYMENTS))
        arrived = self.waybill.ask("peek", name, "--last", str(payments.PAYMENTS + 1))
        left = self.waybill.ask("dead-letters", "list", name)["dead_letters"]
        return [
            *payments.faults([one["value"] for one in arrived["messages"]]),
            *(f"a payment is still a dead letter: {one['message']}" for one in left),
        ]

    def _orders(self) -> Orders:
        """The table, which nobody changes any longer, and whose changes have arrived."""
        names, running = self.names, stack.load(self.home)
        assert running is not None
        folder = running.part(stack.POSTGRESQL).facts["socket_folder"]
        table = self.open_ones.enter_context(Orders(folder, names.database))
        table.create()
        self.waybill.show("apply", *names.write_orders(folder))
        table.start()
        following = self.waybill.begin("run", names.orders_in, "--window", "60s")

        def in_mid_range() -> int | None:
            return driver(self.ledger, names.orders_in) if self.of_orders.messages() > ROWS // 2 else None

        pid = wait_for(in_mid_range)
        if not pid or not kill(pid):
            raise Retriable("The run could not be killed in mid-range", next_step="Start the demo again")
        following.wait()
        self.screen.say(
            f"Killed process {pid}, which had moved {self.of_orders.messages():,} of {ROWS:,} rows and their changes."
        )
        table.stop()
        self.waybill.show("run", names.orders_in)
        self.waybill.show("run", names.orders_out)
        return table

    def _verdict(self, moved: int, devices: Devices, listener: Listener, table: Orders) -> list[str]:
        names, screen, feed = self.names, self.screen, self.feed
        lines = self._account(names.inward), self._account(names.outward)
        of_devices = self._account(names.devices_in), self._account(names.devices_out)
        of_orders = self._account(names.orders_in), self._account(names.orders_out)
        source, target = table.seen(SOURCE), table.seen(TARGET)
        return [
            *verdict.on_lines(screen, feed, names.target, self.topic.messages(), *lines),
            *verdict.on_backfill(screen, feed, names.first_half, moved),
            *verdict.on_devices(screen, devices, listener, self.of_devices.messages(), *of_devices),
            *verdict.on_orders(screen, source, target, table.changes, self.of_orders.messages(), *of_orders),
        ]

    def _say_goodbye(self) -> None:
        running = stack.load(self.home)
        self.screen.say(f"Every line arrived once and in order ({self.screen.seconds:.0f} s);")
        self.screen.say("every message of a device arrived, once except for the repeats that the table shows;")
        self.screen.say("the copy of the table has the same rows.")
        if running is not None:
            self.screen.say(
                f"Airflow's page: {running.airflow_url}, log in as {running.airflow_user}; the password is in"
                f" {running.airflow_password_file}"
            )
            self.screen.say(
                f"RocketMQ Connect's REST calls are answered at http://127.0.0.1:{running.part(stack.REST).ports['http']}"
                " (docs/coming-from-rocketmq-connect.md)"
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
            raise Retriable(f"Not in time: {for_what}", next_step="Look at Airflow's page; start the demo again")

    def _account(self, connector: str, stream: str = "live") -> Account:
        told = self.waybill.ask("receipts", connector, "--stream", stream, "--last", _ALL)
        receipts: list[Receipt] = told["receipts"]
        return add_up(receipts)

    def _settled(self, connector: str) -> int:
        """How many messages of its topic have receipts: each queue began at 0."""
        uid = self.ledger.connector(connector).uid
        positions = self.ledger.positions(uid, LIVE, self.ledger.partitions(uid))
        return sum(position.offset for position in positions.values() if position)

    def _target_bytes(self) -> int:
        return self.names.target.stat().st_size if self.names.target.exists() else 0
