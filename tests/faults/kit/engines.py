"""A Spark Connect server that a test may kill: one for each test process, beside the engine that the session shares."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from connect_core import stack
from connect_core.stack.lifecycle import READY_LIMIT_S
from connect_core.stack.parts import Site
from connect_core.stack.processes import start
from connect_core.stack.record import StackPart, save
from connect_core.stack.spark_connect import SparkConnect
from tests.faults.kit import processes


@dataclass(frozen=True)
class Engine:
    """Started when it is first needed, and again after it was killed, on the same port with the same token.

    `tries` is how often Spark tries a task: the stack's own engine does it once.
    """

    home: Path
    slots: int
    tries: int = 1

    def start(self) -> None:
        """Returns when it answers. No effect when it runs."""
        options = stack.Options(well_known_ports=False, engine_slots=self.slots)
        if self.tries == 1:
            stack.up(self.home, parts=(stack.ENGINE,), supervise=False, options=options)
        else:
            self._start_without_a_first_job(options)

    def _start_without_a_first_job(self, options: stack.Options) -> None:
        """The stack would find out by its first job that this one is not fit for lanes."""
        self.home.mkdir(parents=True)
        kind = SparkConnect()
        place = Site(self.home, kind.choose_ports({}, set()), {}, options)
        kind.prepare(place, report=print)
        settings = self.home / "spark" / "conf" / "spark-defaults.conf"
        master = f"local[{self.slots}]"
        settings.write_text(settings.read_text().replace(master, f"local[{self.slots},{self.tries}]"))
        process = start(kind.launch(place))
        part = StackPart(stack.ENGINE, process, place.ports, kind.version(place), kind.facts(place), time.time())
        save(stack.Stack(self.home, options, {stack.ENGINE: part}))
        processes.wait_for(lambda: kind.is_ready(place, ""), "a server that answers", READY_LIMIT_S)

    @property
    def pid(self) -> int:
        running = stack.load(self.home)
        assert running is not None
        return running.part(stack.ENGINE).process.pid

    def workers(self) -> list[int]:
        """Its Python workers, idle ones included: what its fork servers have forked."""
        forking = processes.children_of(self.pid)
        return [worker for fork_server in forking for worker in processes.children_of(fork_server)]
