"""A Spark Connect server that a test may kill: one for each test process, beside the engine that the session shares."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from connect_core import stack
from tests.faults.kit import processes


@dataclass(frozen=True)
class Engine:
    """Started when it is first needed, and again after it was killed, on the same port with the same token."""

    home: Path
    slots: int

    def start(self) -> None:
        """Returns when its first job has gone through. No effect when it runs."""
        options = stack.Options(well_known_ports=False, engine_slots=self.slots)
        stack.up(self.home, parts=(stack.ENGINE,), supervise=False, options=options)

    def kill(self) -> None:
        """Ends the server and nothing else, as a crash does: its workers notice, or do not."""
        processes.kill(self.pid)

    @property
    def pid(self) -> int:
        running = stack.load(self.home)
        assert running is not None
        return running.part(stack.ENGINE).process.pid

    def workers(self) -> list[int]:
        """Its Python workers, idle ones included: what the fork server has forked."""
        return [
            worker for fork_server in processes.children_of(self.pid) for worker in processes.children_of(fork_server)
        ]
