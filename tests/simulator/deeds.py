"""What happens to both ends, to the document and to the ledger of a journey while runs are at work."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from connect_core.errors import WaybillError
from connect_core.sdk.records import Partition
from tests.simulator import plans
from tests.simulator.checker import Told
from tests.simulator.journey import Journey, Recreated
from tests.simulator.ledger import NAME, UID
from tests.simulator.logfiles import LogFile, Program
from tests.simulator.offsets import set_offset, undo_offset
from tests.simulator.scenario import Deed, entry
from tests.simulator.source import UNREADABLE, Entry

_PATIENCE_S = 6.0
_LOOKS = 60
_ALL, _ONE = "logs/*.log", "logs/a.log"


@dataclass
class Doer:
    """Does one thing at its moment; what is refused is refused."""

    journey: Journey
    deed: Deed

    def run(self) -> None:
        journey = self.journey
        journey.scheduler.tell(self.deed.kind)
        try:
            _DEEDS[self.deed.kind](self)
            journey.counts[self.deed.kind] += 1
        except WaybillError as refused:
            journey.counts[f"{self.deed.kind}, refused"] += 1
            journey.scheduler.tell(f"is refused: {refused}")
        finally:
            journey.unfinished_deeds -= 1

    # -------------------------------------------------------------------------------------------------- the source

    def grow(self) -> None:
        count = self._chance.randint(1, 20)
        if self.journey.logs:
            partition = self._chance.choice(sorted(self.journey.logs))
            log = self.journey.logs[partition]
            for _ in range(count):
                log.add(entry(self._chance, partition.key, log.end, 0))
        elif program := self._program():
            self.journey.folder.write(program, count)

    def torn(self) -> None:
        """Half a line, and after a while the rest of it, unless it stays the last one of its file."""
        if program := self._program():
            self.journey.folder.write(program, self._chance.randint(1, 4), torn=True)
            self._wait(0.05, 1)
            if self._chance.random() < 0.7:
                self.journey.folder.write(program, self._chance.randint(0, 3))

    def bad(self) -> None:
        if self.journey.logs:
            partition = self._chance.choice(sorted(self.journey.logs))
            log = self.journey.logs[partition]
            log.add(Entry(UNREADABLE, f"{partition.key}:{log.end}".encode()))
        elif program := self._program():
            self.journey.folder.write_bad(program)
        self.grow()

    def rename(self) -> None:
        if program := self._known_program():
            self._rotate(program)

    def rename_dated(self) -> None:
        if program := self._known_program():
            self._rotate(program, dated=True)

    def rename_twice(self) -> None:
        """Both between two looks of the product."""
        program = self._known_program()
        if program is None:
            return
        folder = self.journey.folder
        for _ in range(2):
            if folder.rename(program):
                folder.begin_file(program)
                folder.write(program, self._chance.randint(1, 5))

    def _rotate(self, program: Program, *, dated: bool = False) -> None:
        """Some programs are writing, and go on in the old file for a moment; some make the new one only with its first
        line."""
        folder = self.journey.folder
        busy = self._chance.random() < 0.4
        if busy:
            folder.write(program, self._chance.randint(1, 3))
        former = folder.rename(program, dated=dated)
        if former is None:
            return
        if busy:
            self._wait(0.01, 0.2)
            if former.path is not None and former is program.files[-1]:
                folder.write_to_former(program, former, self._chance.randint(1, 3))
        self._wait(0.0, 0.3)
        if program.files[-1] is former and not program.path.exists():
            folder.begin_file(program)
            folder.write(program, self._chance.randint(0, 8))

    def link(self) -> None:
        if program := self._known_program():
            self.journey.folder.link_on(program)
            self.journey.folder.write(program, self._chance.randint(1, 5))

    def copy(self) -> None:
        """As some rotate: a dated copy stays, and the log is renamed as well."""
        program = self._known_program()
        if program is None:
            return
        self.journey.folder.copy(program)
        if self._chance.random() < 0.6:
            self._rotate(program)

    def neighbour(self) -> None:
        """Another program writes `a-1.log`, beside `a.log`. No pattern that is read then names it."""
        program = self._program()
        if program is None or "*" in self.journey.path:
            return
        path = program.path.with_name(f"{program.path.stem}-1.log")
        if not path.exists():
            self.journey.folder.start(Program(f"other-{program.name}", path, foreign=True), 0)
        other = next(one for one in self.journey.folder.programs if one.path == path)
        for _ in range(3):
            self.journey.folder.write(other, self._chance.randint(1, 4))
            self._wait(0.1, 0.8)

    def delete_read(self) -> None:
        """When everything of it is settled."""
        program = self._program()
        if program is None:
            return
        program.closed = True  # nobody else touches it from now on
        self.journey.folder.finish(program)
        until = self.journey.scheduler.now_ns + int(_PATIENCE_S * 1e9)
        while self.journey.scheduler.now_ns < until:
            if self._is_settled(program):
                self.journey.folder.delete_read(program)
                self.journey.counts["log read and deleted, done"] += 1
                return
            self.journey.scheduler.wait(0.1)
        program.closed = False

    def _is_settled(self, program: Program) -> bool:
        database = self.journey.database
        file = program.current
        key = str(program.path)
        query = "SELECT next_offset FROM offsets WHERE partition_key = ?"
        rows = database.connection.execute(query, (key,)).fetchall()
        there = self.journey.texts()
        complete = all(line.text in there for _, line in program.lines())
        return (
            complete
            and file is not None
            and file.path is not None
            and bool(rows)
            and rows[0][0] == file.path.stat().st_size
            and Partition(key).id not in database.open_ranges()
        )

    def delete_former(self) -> None:
        """The oldest one, when all that stood in it has arrived."""
        program = self._program()
        if program is None or len(program.files) < 2:
            return
        there = self.journey.texts()
        settled = Partition(str(program.path)).id not in self.journey.database.open_ranges()
        first = next((file for file in program.files[:-1] if file.path is not None), None)
        if settled and first is not None and all(line.text in there for line in first.lines):
            first.hasty = self._is_followed(program, first)
            self.journey.folder.delete_former(program)

    def _is_followed(self, program: Program, file: LogFile) -> bool:
        """Whether the ledger still stands in this file, as in one that somebody may write to."""
        query = "SELECT evidence FROM offsets WHERE partition_key = ?"
        rows = self.journey.database.connection.execute(query, (str(program.path),)).fetchall()
        seen = [json.loads(evidence) for (evidence,) in rows]
        return any(one.get("ino") == file.number and not one["finished"] for one in seen)

    def new_log(self) -> None:
        folder = self.journey.folder
        name = f"n{len(folder.programs)}"
        program = Program(name, folder.folder / f"{name}.log", foreign="*" not in self.journey.path)
        folder.start(program, self._chance.randint(0, 10))

    def cut(self) -> None:
        if program := self._known_program():
            self.journey.folder.cut(program)
            self._wait(0.0, 1)
            self.journey.folder.write(program, self._chance.randint(1, 10))

    def replace(self) -> None:
        if program := self._known_program():
            self.journey.folder.replace(program)
            self._wait(0.0, 1)
            self.journey.folder.write(program, self._chance.randint(1, 10))

    def delete(self) -> None:
        if program := self._known_program():
            self.journey.folder.delete_unread(program)
            self._wait(0.0, 1)
            self.journey.folder.write(program, self._chance.randint(1, 10))

    def expire(self) -> None:
        """Only where something was settled: what had expired before the first look was never there to be read."""
        partition = self._chance.choice(sorted(self.journey.logs))
        if partition.id not in self.journey.database.committed():
            return
        log = self.journey.logs[partition]
        log.oldest = max(log.oldest, self._chance.randint(0, log.end))

    def lose(self) -> None:
        """The newest messages, some of which were read. Not while a run is at work or has left a range open: what is
        stored at planned offsets then is taken for what was planned. Nor twice between two looks: what came and went
        there was seen by nobody."""
        partition = self._chance.choice(sorted(self.journey.logs))
        log = self.journey.logs[partition]
        for _ in range(_LOOKS):
            incarnation, read_to = self.journey.database.place(partition.id)
            known = min(read_to, log.end) if incarnation == log.losses else 0
            if log.oldest < known and not self.journey.at_work():
                log.lose(self._chance.randint(log.oldest, known - 1))
                return
            self._wait(0.02, 0.1)

    def _program(self) -> Program | None:
        mine = [one for one in self.journey.folder.programs if not one.foreign and not one.closed]
        return self._chance.choice(mine) if mine else None

    def _known_program(self) -> Program | None:
        """One of whose log something was settled: what is rotated away before anybody has looked is never found."""
        program = self._program()
        return program if program and self._is_known(program) else None

    def _is_known(self, program: Program) -> bool:
        names = {str(program.path), *(str(file.path) for file in program.files)}
        rows = self.journey.database.connection.execute("SELECT partition_key FROM offsets")
        return any(key in names for (key,) in rows)

    # -------------------------------------------------------------------------------------------------- the target

    def others_write(self) -> None:
        for _ in range(self._chance.randint(1, 5)):
            queues = sorted(self.journey.broker.queues)
            if queues:
                self.journey.broker.store_foreign(self._chance.choice(queues), self._chance.randint(1, 20))
            self._wait(0, 0.05)

    def queues(self) -> None:
        topic = self.journey.document["sink"]["options"]["topic"]
        there = len(self.journey.broker.topic(topic))
        if there:
            self.journey.broker.create(topic, there + self._chance.choice((1, 2)))

    def retain(self) -> None:
        """The oldest messages go, most often while a range is open whose records may be among them."""
        broker = self.journey.broker
        self._until(lambda: bool(self.journey.database.open_ranges()))
        for queue in broker.topic(self.journey.document["sink"]["options"]["topic"]):
            end = broker.end(queue)
            broker.expire(queue, self._chance.choice((end, end - 1, self._chance.randint(0, end))))

    def recreate(self) -> None:
        """Deleted, made again, and filled by others past what stood there. Where something was settled of every range
        that is open, the new one may begin later than at 0: of a first range nobody could tell."""
        broker = self.journey.broker
        topic = self.journey.document["sink"]["options"]["topic"]
        queues = broker.topic(topic)
        self._until(lambda: not broker.busy())
        if not queues or broker.busy():
            return
        held = {one: {m.message.body for m in broker.queues[one] if m.partition_id} for one in queues}
        lengths = {one: len(broker.queues[one]) for one in queues}
        said = self.journey.document["sink"]["options"]["on_replaced"] == "continue"
        database = self.journey.database
        tells = all(database.committed().get(partition_id) for partition_id in database.open_ranges())
        self.journey.recreated.append(Recreated(topic, held, said, first=not tells))
        for queue in queues:
            begins = (0, 0, lengths[queue] // 2, lengths[queue]) if tells else (0,)
            broker.make_anew(queue, self._chance.choice(begins))
            wanted = lengths[queue] + self._chance.choice((-2, 0, 1, 5, 30))
            broker.store_foreign(queue, wanted - len(broker.queues[queue]))

    # ------------------------------------------------------------------------------------- the document, the offsets

    def elsewhere(self) -> None:
        """What an attempt left open is given up where it began, the next records go to another topic, and before all of
        them have, the first topic is the target again: what stands there ahead is not to be sent once more."""
        journey = self.journey
        partition = self._left_open()
        if partition is None:
            return
        begin = journey.database.committed().get(partition.id, 0)
        sink, limit = journey.document["sink"], journey.document["range_records"]
        other = sink | {"options": sink["options"] | {"topic": "copy-3"}}
        set_offset(journey, journey.source_now(), journey.ledger.assignment(UID), partition, begin, abandon=True)
        journey.revise(sink=other, range_records=3)
        self._until(lambda: journey.database.committed().get(partition.id, 0) > begin)
        journey.alone.set_target_state(UID, "paused", who="operator")
        self._until(lambda: self._idle() and not journey.database.open_ranges())
        journey.revise(sink=sink, range_records=limit)
        journey.alone.set_target_state(UID, "running", who="operator")

    def _left_open(self) -> Partition | None:
        """A partition with an open range of which records have arrived, when nobody is at work."""
        found: list[Partition] = []

        def seen() -> bool:
            there = self.journey.database.open_ranges() if self._idle() else set()
            found[:] = [one for one in sorted(self.journey.logs) if one.id in there and self._is_ahead(one)]
            return bool(found)

        self._until(seen)
        return found[0] if found else None

    def _is_ahead(self, partition: Partition) -> bool:
        begin = self.journey.database.committed().get(partition.id, 0)
        there = self.journey.texts()
        return sum(one.body in there for one in self.journey.logs[partition].entries[begin:]) > 3

    def _idle(self) -> bool:
        return all(one.ended for one in self.journey.scheduler.actors if one.name.startswith("driver"))

    def _until(self, holds: Callable[[], bool]) -> None:
        """Or for so long."""
        until = self.journey.scheduler.now_ns + int(_PATIENCE_S * 1e9)
        while not holds() and self.journey.scheduler.now_ns < until:
            self.journey.scheduler.wait(0.004)

    def limits(self) -> None:
        self.journey.revise(range_records=self._chance.choice((3, 9, 500)))

    def tasks(self) -> None:
        self.journey.revise(tasks=self._chance.choice((1, 2, 3, 4)))

    def target(self) -> None:
        sink = self.journey.document["sink"]
        if sink["system"] == plans.FILE:
            path = self._chance.choice(("out/copy.txt", "out/copy-2.txt"))
            options = sink["options"] | {"path": str(self.journey.home / path)}
        else:
            options = sink["options"] | {"topic": self._chance.choice(("copy", "copy-2"))}
        self.journey.revise(sink=sink | {"options": options})

    def narrow(self) -> None:
        """Another path: one log instead of all, or all again."""
        source = self.journey.document["source"]
        all_of_them = "*" in self.journey.path
        path = _ONE if all_of_them else _ALL
        if not all_of_them and any(one.foreign for one in self.journey.folder.programs):
            return  # it would be read from then on
        wanted = self.journey.absolute({"source": source | {"options": source["options"] | {"path": path}}})
        self.journey.path = path
        self.journey.revise(**wanted)
        if all_of_them:
            self._until_nothing_is_left_of_before()
            if self.journey.path == path:
                self.journey.narrowed.append((self.journey.scheduler.now_ns / 1e9, path))

    def _until_nothing_is_left_of_before(self) -> None:
        """Every run that began before has ended, and one that began since."""
        scheduler = self.journey.scheduler
        old = [actor for actor in scheduler.actors if actor.name.startswith("driver") and not actor.ended]
        while not all(actor.ended for actor in old):
            scheduler.wait(0.2)
        attempts = self.journey.attempts
        until = scheduler.now_ns + int(10e9)
        while self.journey.database.open_ranges() or self.journey.attempts < attempts + 2:
            scheduler.wait(0.2)
            if scheduler.now_ns > until:
                return

    def pause(self) -> None:
        self.journey.alone.set_target_state(UID, "paused", who="operator")
        self._wait(0.1, 2)
        self.journey.alone.set_target_state(UID, "running", who="operator")

    def set_offset(self) -> None:
        self._change(abandon=False)

    def abandon(self) -> None:
        self._change(abandon=True)

    def undo(self) -> None:
        """A change, and after a while the change of the change."""
        partition = self._change(abandon=False)
        self._wait(0.01, 1)
        if partition:
            undo_offset(self.journey, self.journey.ledger.assignment(UID), partition)

    def _change(self, abandon: bool) -> Partition | None:
        assignment = self.journey.ledger.assignment(UID)
        if not assignment.shares:
            return None
        partition = self._chance.choice(sorted(assignment.shares))
        offset = self._place_in(partition)
        if offset is None:
            return None
        source = self.journey.source_now()
        return partition if set_offset(self.journey, source, assignment, partition, offset, abandon=abandon) else None

    def _place_in(self, partition: Partition) -> int | None:
        """Where a record begins."""
        if partition in self.journey.logs:
            return self._chance.randint(0, self.journey.logs[partition].end)
        program = next((one for one in self.journey.folder.programs if str(one.path) == partition.key), None)
        if program is None or len(program.files) != 1 or program.closed or not program.files[0].lines:
            return None
        return self._chance.choice([line.begin for line in program.files[0].lines])

    def restore(self) -> None:
        """A backup of now comes back after a while; the document of then is applied again."""
        journey = self.journey
        connection = journey.database.connection
        young = [one for one in journey.folder.programs if not one.foreign and not self._is_known(one)]
        backup = connection.serialize()
        self._wait(0.1, 2.5)
        journey.told_before = replace(Told.by(connection).and_before(journey.told_before), restored=True)
        connection.deserialize(backup)
        journey.scheduler.tell("the backup is the ledger")
        connection.execute("PRAGMA foreign_keys = ON")
        journey.settled.forget()
        for program in young:
            journey.folder.forget(program)
        journey.restored += 1
        document = json.loads(json.dumps(journey.document))
        if journey.alone.connector(NAME).document != document:
            journey.alone.apply(NAME, document, who="operator")
        if journey.database.paused():  # as when the backup was made; whoever paused it then has resumed it since
            journey.alone.set_target_state(UID, "running", who="operator")

    @property
    def _chance(self) -> random.Random:
        return self.journey.scheduler.chance

    def _wait(self, least_s: float, most_s: float) -> None:
        self.journey.scheduler.wait(self._chance.uniform(least_s, most_s))


_DEEDS: dict[str, Callable[[Doer], None]] = {
    plans.GROW: Doer.grow,
    plans.TORN: Doer.torn,
    plans.BAD: Doer.bad,
    plans.RENAME: Doer.rename,
    plans.RENAME_DATED: Doer.rename_dated,
    plans.RENAME_TWICE: Doer.rename_twice,
    plans.LINK: Doer.link,
    plans.COPY: Doer.copy,
    plans.NEIGHBOUR: Doer.neighbour,
    plans.DELETE_READ: Doer.delete_read,
    plans.DELETE_FORMER: Doer.delete_former,
    plans.NEW_LOG: Doer.new_log,
    plans.CUT: Doer.cut,
    plans.REPLACE: Doer.replace,
    plans.DELETE: Doer.delete,
    plans.EXPIRE: Doer.expire,
    plans.LOSE: Doer.lose,
    plans.FOREIGN: Doer.others_write,
    plans.QUEUES: Doer.queues,
    plans.RECREATE: Doer.recreate,
    plans.RETAIN: Doer.retain,
    plans.ELSEWHERE: Doer.elsewhere,
    plans.LIMITS: Doer.limits,
    plans.TASKS: Doer.tasks,
    plans.TARGET: Doer.target,
    plans.NARROW: Doer.narrow,
    plans.PAUSE: Doer.pause,
    plans.SET: Doer.set_offset,
    plans.UNDO: Doer.undo,
    plans.ABANDON: Doer.abandon,
    plans.RESTORE: Doer.restore,
}
