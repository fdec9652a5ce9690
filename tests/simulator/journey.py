"""One journey: a connector moves files, logs and topics while both ends, its document and its ledger change.

The drivers are the product's `run_task`, with its own file source and file sink on real files and its RocketMQ sink on
the simulated broker. Runs are started until nothing happens any more and three runs of each task in a row had nothing
to complain about; then `checker` compares what the world gave with the bytes that arrived.
"""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from connect_core import clock, systems
from connect_core.config.endpoints import Surroundings, _absolute
from connect_core.config.resolving import Resolved
from connect_core.observe import Step
from connect_core.replication.driver import run as running
from connect_core.replication.driver.context import RunContext
from connect_core.replication.driver.ledger_restore import seen_files
from connect_core.replication.driver.task import TaskRun
from connect_core.rocketmq import Queue
from connect_core.sdk.records import Partition
from connect_core.sdk.sink import Sink
from connect_core.sdk.source import Source
from connect_core.sdk.values import Json
from connect_core.systems.file.options import FileSinkOptions, FileSourceOptions
from connect_core.work import Side
from tests.simulator import plans
from tests.simulator.broker import Broker, Holder, SimulatedSink
from tests.simulator.checker import Given, Told, Verdict, compared
from tests.simulator.engine import Place, SimulatedEngine
from tests.simulator.faults import Faults
from tests.simulator.kernel import Kernel, installed
from tests.simulator.ledger import NAME, UID, Database, SimulatedLedger, name_connector
from tests.simulator.logfiles import LogFolder, Program
from tests.simulator.plans import Plan, planned
from tests.simulator.runs import Starter
from tests.simulator.scheduler import Scheduler
from tests.simulator.settled import SettledFiles
from tests.simulator.source import HOLE, PLAIN, Log, SimulatedSource
from tests.simulator.stage import Stage
from tests.simulator.topics import SimulatedTopicSource, SourceBroker, waiting

MAX_TASKS = 4
CALM_RUNS = 3


class JourneyRun(TaskRun):
    """The product's run; its steps are told, and are places where it can die."""

    def __init__(self, context: RunContext, *rest: Any) -> None:
        super().__init__(context, *rest)
        assert isinstance(context.engine, SimulatedEngine)
        self._place = context.engine.place
        context.engine.run = self

    def reached(self, step: Step) -> None:
        self._place.step(f"reached {step}")


@dataclass
class Journey(Stage):
    """`alone` is the ledger without faults, for whoever looks on. `given_up` are the partitions of which a document
    named the log no more, with the moment from which on nothing of it may be read."""

    seed: int
    home: Path
    database: Database
    tracing: bool = False
    plan: Plan | None = None
    counts: Counter[str] = field(default_factory=Counter)
    attempts: int = 0
    problems: list[str] = field(default_factory=list)
    called: Counter[str] = field(default_factory=Counter)
    given_up: dict[str, tuple[int, dict[Queue, int]]] = field(default_factory=dict)
    """When a person gave a range up, and what had expired then, by the queue and the partition of the error."""
    told_before: Told = field(default_factory=Told)
    recreated: list[Recreated] = field(default_factory=list)
    restored: int = 0
    calm: bool = False
    accepts_gaps: bool = False
    """What a person says once, for the next run."""

    def __post_init__(self) -> None:
        chance = random.Random(self.seed)
        drawn = planned(chance)
        self.is_planned = self.plan or drawn
        self.scheduler = Scheduler(chance, tracing=self.tracing)
        self.scheduler.hidden = str(self.home)
        self.faults = Faults(self.scheduler, self.is_planned.faults)
        self.broker = Broker(self.scheduler, self.faults, self.step)
        self.logs = {Partition(key): Log(list(entries)) for key, entries in self.is_planned.logs.items()}
        self.source_broker = SourceBroker(self.scheduler, self.faults, self.step, self.logs)
        births: dict[int, int] = {}
        self.kernel = Kernel(self.scheduler, self.step, births)
        self.folder = LogFolder(
            self.home / "logs",
            chance,
            lambda: self.scheduler.now_ns / 1e9,
            births,
            self.kernel.held,
            self.scheduler.tell,
        )
        self.unfinished_deeds = len(self.is_planned.deeds)
        self.holders = 0
        self.calm_runs: Counter[int] = Counter()
        self.narrowed: list[tuple[float, str]] = []

    # ------------------------------------------------------------------------------------------------ the whole of it

    def run(self) -> None:
        """Fills `problems` with what happened that must not happen; the rest is for `verdict`."""
        from tests.simulator.deeds import Doer

        for name in ("locks", "logs", "out"):
            shutil.rmtree(self.home / name, ignore_errors=True)
            (self.home / name).mkdir(parents=True)
        for seen in seen_files(self.home):
            seen.unlink()
        for writer in self.is_planned.writers:
            path = self.home / "logs" / f"{writer.name}.log"
            self.folder.start(Program(writer.name, path, linked=writer.linked, alike=writer.alike), writer.lines)
        with self._installed():
            self.alone = self.database.begin_anew()
            self.document = self.absolute(self.is_planned.document)
            self.path = self.is_planned.document["source"]["options"].get("path", "")
            self.alone.apply(NAME, self.document, who="simulator")
            name_connector(self.database.connection, UID)
            self.settled = SettledFiles(self.database.connection)
            self.ledger = SimulatedLedger(
                self.database.engine, self.step, self.faults, self._look_at_files, self.scheduler.tell
            )
            for task in range(MAX_TASKS):
                self.scheduler.spawn(f"starter {task}", Starter(self, task).run)
            for number, deed in enumerate(self.is_planned.deeds):
                self.scheduler.spawn(f"operator {number}", Doer(self, deed).run, deed.at_s)
            self.scheduler.run()
            hung = self.scheduler.end()
        self.problems += [f"{name} hangs" for name in hung]
        self.problems += [f"{name} crashed: {crash!r}" for name, crash in self.scheduler.crashes]
        self.problems += self.broker.faulty
        if self.scheduler.exhausted:
            self.problems.append("it goes round in circles")

    @contextmanager
    def _installed(self) -> Iterator[None]:
        with ExitStack() as stack:
            stack.enter_context(clock.replaced_by(self.scheduler))
            stack.enter_context(waiting(self.scheduler))
            stack.enter_context(installed(self.kernel, self.scheduler, self.home))
            stack.enter_context(patch.object(systems, "source", lambda side, resources=None: self.source(side)))
            stack.enter_context(patch.object(systems, "sink", lambda side, resources=None: self.sink(side, Holder())))
            stack.enter_context(patch.object(running, "TaskRun", JourneyRun))
            yield

    # -------------------------------------------------------------------------------------------------- the two ends

    def source(self, side: Side) -> Source:
        if side.system == plans.TOPIC:
            return SimulatedTopicSource(self.source_broker, side.options)
        if side.system == plans.LOG:
            return SimulatedSource(self.logs, self.is_planned.source_batch, self.step, self.faults)
        return _source(side)

    def source_now(self) -> Source:
        """As the document has it."""
        return self.source(self.resolved(self.document).source)

    def sink_now(self) -> Sink:
        """As the document has it."""
        return self.sink(self.resolved(self.document).sink, Holder())

    def sink(self, side: Side, holder: Holder) -> Sink:
        if side.system == plans.TOPIC:
            return SimulatedSink(self.broker, **side.options, holder=holder)
        return _sink(side)

    def place(self) -> Place:
        return Place(
            scheduler=self.scheduler,
            faults=self.faults,
            source=self.source,
            sink=self.sink,
            step=self.step,
            looks=lambda search: None,
            pace=self.is_planned.pace,
        )

    def absolute(self, document: Json) -> Json:
        """As `apply` stores it."""
        return document | {
            side: self._absolute_end(side, document[side]) for side in ("source", "sink") if side in document
        }

    def _absolute_end(self, role: str, end: Json) -> Json:
        if end["system"] != plans.FILE:
            return end
        model = FileSourceOptions if role == "source" else FileSinkOptions
        return end | {"options": _absolute(model, end["options"], Surroundings(None, (self.home,)))[0]}

    def resolved(self, document: Json) -> Resolved:
        source, sink = document["source"], document["sink"]
        injected = {"uid": UID, "sink_system": sink["system"]} if source["system"] == plans.TOPIC else {}
        tasks = {"tasks": document["tasks"]} if sink["system"] == plans.FILE else {}
        return Resolved(
            name=NAME,
            uid=UID,
            source=Side(source["system"], source["options"] | injected),
            sink=Side(sink["system"], sink["options"] | tasks),
            pipeline=document["pipeline"],
            tasks=document["tasks"],
            range_records=document["range_records"],
            range_bytes=1 << 20,
            tolerance=document["tolerance"],
            on_data_loss=document["on_data_loss"],
        )

    # -------------------------------------------------------------------------------------------------- what is known

    def holder(self) -> str:
        self.holders += 1
        return f"holder {self.holders}"

    def revise(self, **changes: object) -> None:
        self.document = {**self.alone.connector(NAME).document, **changes}
        self.alone.apply(NAME, self.document, who="operator")

    def ended_well(self, task: int) -> None:
        """A run of this task has done all there was."""
        if self.unfinished_deeds:
            return
        if not self.calm:
            self.calm, self.faults.left = True, 0
            for program in self.folder.programs:
                self.folder.finish(program)
        else:
            self.calm_runs[task] += 1

    def over(self) -> bool:
        if self.problems:
            return True
        idle = all(actor.ended for actor in self.scheduler.actors if actor.name.startswith("driver"))
        return idle and self.calm and all(self.calm_runs[n] >= CALM_RUNS for n in range(self.document["tasks"]))

    def _look_at_files(self) -> None:
        self.problems += self.settled.faults()

    # ------------------------------------------------------------------------------------------------- given, arrived

    def verdict(self) -> Verdict:
        told = Told.by(self.database.connection).and_before(self.told_before)
        arrived, anew = self.arrived(), {one.topic for one in self.recreated if one.said or one.first}
        ordered = {target: parts for target, parts in arrived.items() if target not in anew}
        torn = sum(one.torn for stored in self.broker.queues.values() for one in stored)
        verdict = compared(list(self.given()), arrived, told, ordered, torn)
        if self.document["sink"]["options"].get("order") == "partition" and not self.recreated:
            verdict.faults += self._spread()
        return verdict

    def _spread(self) -> Iterator[str]:
        """`order: partition`: one queue of a topic, for good."""
        texts = {one.text: one.partition for one in self.given()}
        seen: dict[tuple[str, str], set[int]] = {}
        for queue, stored in self.broker.queues.items():
            for one in stored:
                if one.message.body in texts:
                    seen.setdefault((texts[one.message.body], queue.topic), set()).add(queue.queue_id)
        for (partition, topic), queues in seen.items():
            if len(queues) > 1:
                yield f"{partition.rpartition('/')[2]} stands in the queues {sorted(queues)} of {topic}"

    def arrived(self) -> dict[str, dict[str, list[bytes]]]:
        """By topic and queue, or file, in the order in which it stands there. What others wrote is left out, and where
        the ledger was restored what it does not know of: nobody may write there again, who would set it aside."""
        found: dict[str, dict[str, list[bytes]]] = {}
        settled = self.settled.lengths() if self.restored else {}
        for path in sorted((self.home / "out").iterdir()):
            if ".unsettled" not in path.name:
                data = path.read_bytes()
                lines = data[: settled.get(path.name, 0) if self.restored else len(data)].split(b"\n")
                found.setdefault("files", {})[path.name] = lines[:-1] + [line for line in lines[-1:] if line]
        for queue, stored in sorted(self.broker.queues.items()):
            bodies = [one.message.body for one in stored if one.message.body != b"foreign" and not one.torn]
            found.setdefault(queue.topic, {})[str(queue)] = bodies
        return found

    def texts(self) -> set[bytes]:
        """All that has arrived."""
        return {text for parts in self.arrived().values() for texts in parts.values() for text in texts}

    def given(self) -> Iterator[Given]:
        for partition, log in self.logs.items():
            stopped = False
            for n, one in log.ever():
                bad = one.kind not in (HOLE, PLAIN)
                stopped = stopped or (bad and not self.is_planned.helped)
                if one.kind != HOLE:
                    required = not stopped and not self._is_gone(one.body)
                    yield Given(partition.key, n, one.body, log.gone(n, one), required=required, bad=bad)
        for program in self.folder.programs:
            if not program.foreign:
                yield from self._given_by(program)

    def _given_by(self, program: Program) -> Iterator[Given]:
        named, since = self._is_named(program)
        numbers = {id(file): number for number, file in enumerate(program.files)}
        stopped = False
        for file, line in program.lines():
            stopped = stopped or (line.bad and not self.is_planned.helped)
            yield Given(
                str(program.path),
                line.begin,
                line.text,
                line.lost or ("renamed unseen" if file.unseen or file.anew else ""),
                line.unseen,
                file.hidden,
                named and not stopped and not self._is_gone(line.text),
                forbidden=not named and line.at_s > since,
                nth_file=numbers[id(file)],
                bad=line.bad,
            )

    def at_work(self) -> bool:
        """Whether a run is, or has left a range open."""
        working = (one for one in self.scheduler.actors if not one.name.startswith(("starter", "operator")))
        left = self.database.connection.execute("SELECT 1 FROM ranges WHERE state = 'open'").fetchone()
        return left is not None or any(not one.ended for one in working)

    def _is_gone(self, text: bytes) -> bool:
        """It had arrived in a topic that others deleted."""
        return any(one.excuses(text, self.broker) for one in self.recreated)

    def _is_named(self, program: Program) -> tuple[bool, float]:
        if "*" in self.path or self.path == f"logs/{program.path.name}":
            return True, 0.0
        return False, next((since for since, kept in reversed(self.narrowed) if kept == self.path), float("inf"))


@dataclass
class Recreated:
    """A target topic that others deleted, made anew and filled. `held` is what of ours stood there, by queue. `said`:
    a run has said that it is gone, or a person had said before that it is to go on; then nor is order asked for, since
    what is there in part is made whole behind what came since."""

    topic: str
    held: dict[Queue, set[bytes]]
    said: bool = False
    first: bool = False
    """Within the first range of a partition: then nobody can tell, and order is not asked for either."""

    def excuses(self, text: bytes, broker: Broker) -> bool:
        """Whoever writes on there must have said first what is missing."""
        queues = [queue for queue, texts in self.held.items() if text in texts]
        return any(self.said or all(one.partition_id == "" for one in broker.queues[queue]) for queue in queues)


_source, _sink = systems.source, systems.sink
