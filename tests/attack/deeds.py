"""What is done to the stack, one deed after the other, chosen by a seeded generator. Each deed says what it did."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import psutil

from connect_core import stack
from tests.attack.feeding import Devices, Files
from tests.attack.world import ACROSS, DEVICES, FILES_IN, OUT, Stopped, World, chosen

PARTS = (
    stack.SCHEDULER,
    stack.DAG_PROCESSOR,
    stack.TRIGGERER,
    stack.API_SERVER,
    stack.ENGINE,
    stack.POSTGRESQL,
    stack.NAME_SERVER,
    stack.BROKER,
    stack.MQTT_BROKER,
)
_STILL_S = (1.0, 14.0)
"""How long a process stands still: shorter and longer than a lease's time to live less its margin."""
_BEFORE_ITS_END_S = 3.0
"""So long one stands still, at most, before it is killed there."""
_PAUSED_S = (0.0, 8.0)
_LIVE = (FILES_IN, OUT, ACROSS)


@dataclass
class Attacker:
    world: World
    files: Files
    devices: Devices
    rng: random.Random
    stopped: Stopped = field(default_factory=Stopped)

    def strike(self) -> None:
        """Something happens to a process or to a log."""
        self._do({self._kill: 4, self._stand_still: 4, self._rename: 1, self._switch_link: 1})

    def operate(self) -> None:
        """Somebody types a command, or several."""
        self._do({self._pause: 1, self._apply: 2, self._backfill: 1, self._replay: 1, self._move_offset: 2})

    def _do(self, weights: dict[Callable[[], str], int]) -> None:
        deed = self.rng.choices([*weights], [*weights.values()])[0]
        self.world.log(f"{deed.__name__.strip('_')}: {deed()}")

    def _target(self) -> tuple[str, int | None]:
        """A process of the stack, and what it is."""
        world = self.world
        kinds: dict[str, Callable[[], int | None]] = {
            "idle executor worker": lambda: chosen(self.rng, world.below(stack.SCHEDULER, "<idle>")),
            "busy executor worker": lambda: chosen(self.rng, self._supervisors()),
            "task process": lambda: chosen(self.rng, [one for it in self._supervisors() for one in it.children()]),
            "Spark worker": lambda: chosen(self.rng, world.below(stack.ENGINE, "pydaemon")),
            **{part: partial(world.pid, part) for part in PARTS},
        }
        kind = self.rng.choice([*kinds])
        return kind, kinds[kind]()

    def _supervisors(self) -> list[psutil.Process]:
        return self.world.below(stack.SCHEDULER, "airflow worker -- LocalExecutor", but="<idle>")

    def _kill(self) -> str:
        kind, pid = self._target()
        if pid is None:
            return f"no {kind} is there"
        if kind == stack.MQTT_BROKER:
            self.devices.kills.append(time.monotonic())
        return f"{kind} ({pid})" if _signal(pid, signal.SIGKILL) else f"{kind} had just ended"

    def _stand_still(self) -> str:
        kind, pid = self._target()
        if pid is None or pid in self.stopped.timers:
            return f"no {kind} is there"
        seconds = self.rng.uniform(*_STILL_S)
        try:
            self.stopped.stop(pid, seconds)
        except ProcessLookupError:
            return f"{kind} had just ended"
        killed = self.rng.random() < 0.3
        if killed and kind != stack.MQTT_BROKER:
            time.sleep(min(seconds, _BEFORE_ITS_END_S))
            _signal(pid, signal.SIGKILL)
        return f"{kind} ({pid}) for {seconds:.1f} s{', killed there' if killed else ''}"

    def _pause(self) -> str:
        name = self.rng.choice((*_LIVE, DEVICES))
        paused, _ = self.world.command("connectors", "pause", name)
        time.sleep(self.rng.uniform(*_PAUSED_S))
        resumed, _ = self.world.command("connectors", "resume", name)
        return f"{name} and resumed: exit codes {paused}, {resumed}"

    def _apply(self) -> str:
        name = self.rng.choice((*_LIVE, DEVICES))
        changed: dict[str, Any] = {"limits": {"range_records": self.rng.choice((500, 2_000, 10_000))}}
        if name in (OUT, ACROSS):
            changed["tasks"] = self.rng.choice((1, 2, 3))
        code, _ = self.world.apply(name, **changed)
        return f"{name} {changed}: exit code {code}"

    def _backfill(self) -> str:
        name = self.rng.choice((OUT, ACROSS))
        place = self._somewhere_settled(name)
        if place is None:
            return f"nothing of {name} to move again"
        partition, begin, end = place
        code, out = self.world.command("backfill", name, "--range", f"{partition}:{begin}-{end}")
        return f"{name} {partition} {begin}-{end}: exit code {code} {_last(out) if code else ''}"

    def _replay(self) -> str:
        name = self.rng.choice((ACROSS, OUT))
        runs = [one["run"] for one in self.world.json("receipts", name, "--last", "10").get("receipts", [])]
        if not runs:
            return f"nothing of {name} to move again"
        code, out = self.world.command("replay", name, "--run", self.rng.choice(runs))
        return f"{name}: exit code {code} {_last(out) if code else ''}"

    def _move_offset(self) -> str:
        """Back, and perhaps forth again; the connector stands still meanwhile, as a person would have it."""
        name = self.rng.choice((OUT, ACROSS))
        self.world.command("connectors", "pause", name)
        codes = []
        try:
            place = self._somewhere_settled(name)
            if place is None:
                return f"nothing of {name} to move back to"
            partition, begin, _ = place
            until = time.monotonic() + 20
            while not codes or (codes[-1] != 0 and time.monotonic() < until):
                code, out = self.world.command("offsets", "set", name, partition, str(begin), "--yes")
                codes.append(code)
            said = _last(out) if codes[-1] else ""
            if codes[-1] == 0 and self.rng.random() < 0.5:
                codes.append(self.world.command("offsets", "undo", name, partition, "--yes")[0])
                said += " and undone"
            return f"{name} {partition} back to {begin}: exit codes {codes} {said}"
        finally:
            self.world.command("connectors", "resume", name)

    def _somewhere_settled(self, name: str) -> tuple[str, int, int] | None:
        """A stretch of a partition that is settled."""
        offsets = self.world.json("offsets", "show", name).get("offsets", [])
        known = [(one["partition"], int(one["offset"])) for one in offsets if int(one.get("offset") or 0) > 10]
        if not known:
            return None
        partition, committed = self.rng.choice(sorted(known))
        begin = self.rng.randrange(committed - min(committed, 2_000), committed - 1)
        return partition, begin, self.rng.randrange(begin + 1, committed)

    def _rename(self) -> str:
        return self.files.rename()

    def _switch_link(self) -> str:
        return self.files.switch_link()


def _signal(pid: int, sign: signal.Signals) -> bool:
    try:
        os.kill(pid, sign)
    except ProcessLookupError:
        return False
    return True


def _last(out: str) -> str:
    lines = [line for line in out.splitlines() if line.strip()]
    return f"({lines[-1].strip()[:160]})" if lines else ""
