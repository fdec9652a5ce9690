"""Virtual time and the processes that live in it: one runs at a time, and who runs next is decided by the seed alone.

An actor stands for a process of the product (a driver, a worker) or for whoever starts and operates them. It is a
thread, so that the product's own blocking code runs unchanged; the right to run is one baton that is handed from
thread to thread. Time moves when the actor that has the baton waits: then the event that is due next happens, at its
moment, whatever the machine does meanwhile.

A killed actor does nothing any more: everything that it could touch (clock, ledger, broker, engine) asks `alive`
first, which raises `Killed`, so that only its stack unwinds, and no `finally` of the product has any effect.
"""

from __future__ import annotations

import heapq
import math
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.simulator.hosts import Host

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
STEP = "· "
"""Before each line about a step that processes take by the hundred."""
_EVENT_LIMIT = 400_000
"""A history that needs more goes round in circles."""


class Killed(BaseException):
    """Stands for SIGKILL: never caught by the product."""


@dataclass(eq=False)
class Actor:
    """One process. `stopped_until_ns` is the end of its SIGSTOP; `waiting` numbers its waits, so that a wake-up that
    comes for an earlier one is ignored; a worker's `parent` is its driver; `blocking` when it
    waits for somebody, not for a moment; `pace` how many times slower than usual it is. A worker on another host has
    that `host`, and the deadline of its lane in the time of the world."""

    name: str
    work: Callable[[], None]
    parent: Actor | None = None
    dead: bool = False
    ended: bool = False
    stopped_until_ns: int = 0
    waiting: int = 0
    blocking: bool = False
    pace: float = 1.0
    host: Host | None = None
    deadline_ns: int = 0
    at_end: list[Callable[[], None]] = field(default_factory=list)
    killed_by: BaseException | None = None
    turn: threading.Lock = field(default_factory=threading.Lock)
    thread: threading.Thread | None = None

    def __post_init__(self) -> None:
        self.turn.acquire()


class Scheduler:
    """A `Clock` for `connect_core.clock`, and the order in which everything happens."""

    def __init__(self, chance: random.Random, *, tracing: bool = False) -> None:
        self.chance = chance
        self.now_ns = 0
        self.actors: list[Actor] = []
        self.current: Actor | None = None
        self.crashes: list[tuple[str, BaseException]] = []
        self.trace: list[str] = []
        self.exhausted = False
        self.hidden = ""
        """What no line of the history says: where this process keeps its files."""
        self._tracing = tracing
        self._events: list[tuple[int, int, Actor | None, int, Callable[[], None] | None]] = []
        self._count = 0
        self._over = threading.Lock()
        self._over.acquire()

    # -------------------------------------------------------------------------------------------------- the clock

    def boottime_ns(self) -> int:
        """Of the host of whoever runs."""
        self.alive()
        host = self.current and self.current.host
        return host.reads(self.now_ns) if host else self.now_ns

    def monotonic(self) -> float:
        self.alive()
        return self.now_ns / 1e9

    def utc(self) -> datetime:
        self.alive()
        return EPOCH + timedelta(microseconds=self.now_ns / 1000)

    def sleep(self, seconds: float) -> None:
        self.wait(seconds)

    # ----------------------------------------------------------------------------------------- what the world does

    def tell(self, text: str, who: str = "", mark: str = "") -> None:
        """A line of the history."""
        if self._tracing:
            name = who or (self.current.name if self.current else "world")
            shown = text.replace(self.hidden, "~") if self.hidden else text
            self.trace.append(f"{self.now_ns / 1e9:10.6f}  {name:12}  {mark}{shown}")

    def at(self, moment_ns: int, happens: Callable[[], None]) -> None:
        """Something that no actor does. It must not wait."""
        self._push(max(moment_ns, self.now_ns), None, 0, happens)

    def after(self, seconds: float, happens: Callable[[], None]) -> None:
        self.at(self.now_ns + int(seconds * 1e9), happens)

    def spawn(self, name: str, work: Callable[[], None], after_s: float = 0.0, parent: Actor | None = None) -> Actor:
        actor = Actor(name, work, parent)
        self.actors.append(actor)
        self._push(self.now_ns + int(after_s * 1e9), actor, 0, None)
        return actor

    def kill(self, actor: Actor, why: str) -> None:
        """SIGKILL: also of a stopped one."""
        if actor.dead or actor.ended:
            return
        self.tell(f"is killed: {why}", actor.name)
        actor.dead = True
        if actor is self.current:
            raise Killed(why)
        self._push(self.now_ns, actor, actor.waiting, None)

    def stop(self, actor: Actor, seconds: float) -> None:
        """SIGSTOP, and SIGCONT after that time."""
        self.tell(f"is stopped for {seconds:.3f} s", actor.name)
        actor.stopped_until_ns = max(actor.stopped_until_ns, self.now_ns + int(seconds * 1e9))

    def wake(self, actor: Actor) -> None:
        """Ends the wait of an actor that blocks; a sleeping one sleeps on."""
        if actor.blocking:
            self._push(self.now_ns, actor, actor.waiting, None)

    def run(self) -> None:
        """Until nothing is left to happen."""
        following = self._next()
        if following is not None:
            self._hand_to(following)
            self._over.acquire()

    def end(self) -> list[str]:
        """Kills whoever is left when nothing can happen any more; their names."""
        left = [actor for actor in self.actors if not actor.ended]
        for actor in left:
            actor.dead = True
            self._push(self.now_ns, actor, actor.waiting, None)
        self.run()
        return [actor.name for actor in left]

    # ----------------------------------------------------------------------------------------- what an actor does

    def alive(self) -> None:
        """Raises Killed in an actor that is dead."""
        if self.current is not None and self.current.dead:
            raise Killed

    def wait(self, seconds: float) -> None:
        """The actor that runs sleeps. Less than a nanosecond is one: whoever waits for a moment must get there."""
        me = self._begin_wait()
        self._push(self.now_ns + max(math.ceil(seconds * 1e9), 0), me, me.waiting, None)
        self._until_my_turn(me)

    def block(self) -> None:
        """The actor that runs sleeps until somebody wakes it: it then looks whether that was what it waits for."""
        me = self._begin_wait()
        me.blocking = True
        try:
            self._until_my_turn(me)
        finally:
            me.blocking = False

    # ------------------------------------------------------------------------------------------------- the baton

    def _begin_wait(self) -> Actor:
        self.alive()
        assert self.current is not None, "only an actor can wait"
        self.current.waiting += 1
        return self.current

    def _until_my_turn(self, me: Actor) -> None:
        following = self._next()
        if following is me:
            self.current = me
        else:
            self._hand_to(following)
            me.turn.acquire()
        self.alive()

    def _push(self, moment_ns: int, actor: Actor | None, waiting: int, happens: Callable[[], None] | None) -> None:
        self._count += 1
        heapq.heappush(self._events, (moment_ns, self._count, actor, waiting, happens))

    def _next(self) -> Actor | None:
        """Lets everything happen up to the moment at which an actor goes on, and returns that actor."""
        self.current = None
        while self._events:
            moment, _, actor, waiting, happens = heapq.heappop(self._events)
            self.now_ns = max(self.now_ns, moment)
            if self._count > _EVENT_LIMIT and not self.exhausted:
                self._give_up()
            if happens is not None:
                if not self.exhausted:
                    happens()
            elif actor is not None and self._may_go_on(actor, waiting):
                return actor
        return None

    def _may_go_on(self, actor: Actor, waiting: int) -> bool:
        if actor.ended or (waiting != actor.waiting and not actor.dead):
            return False
        if actor.dead or actor.stopped_until_ns <= self.now_ns:
            return True
        self._push(actor.stopped_until_ns, actor, waiting, None)
        return False

    def _give_up(self) -> None:
        self.exhausted = True
        for actor in self.actors:
            if not actor.ended:
                actor.dead = True
                self._push(self.now_ns, actor, actor.waiting, None)

    def _hand_to(self, following: Actor | None) -> None:
        self.current = following
        if following is None:
            self._over.release()
        elif following.thread is None:
            following.thread = threading.Thread(target=self._live, args=(following,), daemon=True)
            following.thread.start()
        else:
            following.turn.release()

    def _live(self, me: Actor) -> None:
        try:
            self.alive()
            me.work()
        except Killed as killed:
            me.killed_by = killed
        except BaseException as crash:
            self.crashes.append((me.name, crash))
        self.current = None
        me.ended = True
        for effect in me.at_end:
            effect()
        self._hand_to(self._next())
