"""Parts that come after others: the order of starting, stopping and starting again. The parts are shell scripts."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from connect_core import stack
from connect_core.errors import Unreachable
from connect_core.stack import lifecycle, ports, processes
from connect_core.stack.jars import Report
from connect_core.stack.parts import NOT_ANSWERING, RUNNING, Site
from connect_core.stack.processes import Launch
from connect_core.stack.record import want, wanted

WORKS = "sleep 600 & echo $! > child-{name}; echo up; wait"
"""Leaves a child behind when it is killed, as a scheduler leaves its executor's workers."""


@dataclass
class Small:
    """A part that is a shell script. `seen` is what happened to all of them, in its order."""

    name: str
    seen: list[str]
    after: tuple[str, ...] = ()
    told: tuple[str, ...] = ()
    script: str = WORKS
    well_known: Mapping[str, int] = field(default_factory=dict)
    stop_signal: signal.Signals = signal.SIGTERM
    stop_grace_s: float = 5

    def choose_ports(self, wanted: Mapping[str, int], taken: Set[int]) -> Mapping[str, int]:
        return {"only": ports.choose(wanted.get("only", 0), taken)}

    def prepare(self, site: Site, report: Report) -> None:
        child = child_of(site.home, self.name)
        self.seen.append(f"{self.name} prepared{' beside its child' if child and child.is_alive else ''}")

    def launch(self, site: Site) -> Launch:
        script = f"cd {site.home}; {self.script.format(name=self.name)}"
        return Launch(("/bin/sh", "-c", script), {"PATH": os.environ["PATH"]}, site.log(self.name))

    def is_ready(self, site: Site, output: str) -> bool:
        return "up" in output

    def welcome(self, site: Site) -> None:
        self.seen.append(f"{self.name} ready")

    def condition(self, site: Site) -> str:
        return NOT_ANSWERING if (site.home / f"silent-{self.name}").exists() else RUNNING

    def version(self, site: Site) -> str:
        return "1"

    def facts(self, site: Site) -> Mapping[str, str]:
        return {}


@dataclass
class Place:
    home: Path
    kinds: dict[str, Small]
    seen: list[str]

    def up(self, *names: str) -> stack.Stack:
        return stack.up(self.home, parts=names or tuple(self.kinds), supervise=False, report=self.seen.append)

    def crash(self, name: str) -> processes.Process:
        """Kills the part alone; what it leaves behind."""
        running = stack.load(self.home)
        assert running is not None
        child = child_of(self.home, name)
        os.kill(running.part(name).process.pid, signal.SIGKILL)
        assert child is not None
        assert child.is_alive
        return child

    def order(self, *events: str) -> list[str]:
        """Those of the events that were seen, as they came."""
        return [one for one in self.seen if one in events]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    seen: list[str] = []
    base, upper, alone = Small("base", seen), Small("upper", seen, ("base",), told=("base",)), Small("alone", seen)
    place = Place(tmp_path / ".waybill", {kind.name: kind for kind in (base, upper, alone)}, seen)
    monkeypatch.setattr(lifecycle, "KINDS", place.kinds)
    yield place
    stack.down(place.home, parts=tuple(place.kinds))


def child_of(home: Path, name: str) -> processes.Process | None:
    path = home / f"child-{name}"
    return processes.of(int(path.read_text())) if path.exists() else None


def test_a_part_is_prepared_when_the_one_before_it_is_ready(place: Place) -> None:
    place.up("upper", "base")
    assert place.order("base ready", "upper prepared") == ["base ready", "upper prepared"]


def test_parts_that_need_nobody_do_not_wait(place: Place) -> None:
    place.kinds["base"].script = f"while [ ! -e child-alone ]; do sleep 0.02; done; {WORKS}"
    place.up()
    assert place.order("alone prepared", "base ready") == ["alone prepared", "base ready"]


def test_what_comes_after_a_part_that_failed_is_not_started(place: Place) -> None:
    place.kinds["base"].script = "echo broken; exit 1"
    with pytest.raises(Unreachable, match=r"base ended while it started(.|\n)*broken"):
        place.up()
    assert not place.order("upper prepared")
    assert any("upper was not started: it needs the base" in line for line in place.seen)
    assert place.order("alone ready")


@dataclass
class Overtaken(Small):
    """A part whose port another program takes before it listens itself."""

    others: list[socket.socket] = field(default_factory=list)

    def prepare(self, site: Site, report: Report) -> None:
        self.others.append(socket.create_server(("127.0.0.1", site.ports["only"])))


def test_a_part_whose_port_was_taken_meanwhile_says_so_and_gets_another(place: Place) -> None:
    overtaken = place.kinds["base"] = Overtaken("base", place.seen, script="echo Address already in use; exit 1")
    with pytest.raises(Unreachable) as told:
        place.up("base")
    (other,) = overtaken.others
    with other:
        assert f"Leave port {other.getsockname()[1]} to the program that has it now and run it again" in str(told.value)
        place.kinds["base"] = Small("base", place.seen)
        assert place.up("base").part("base").ports["only"] != other.getsockname()[1]


def test_what_comes_after_a_part_that_does_not_run_says_which(place: Place) -> None:
    with pytest.raises(Unreachable, match=r"upper was not started: it needs the base.*--only base --only upper"):
        place.up("upper")


def test_what_comes_after_a_part_that_runs_already_is_started(place: Place) -> None:
    place.up("base")
    assert place.up("upper").part("upper").process.is_alive


def test_parts_are_stopped_in_the_other_direction(place: Place) -> None:
    place.up()
    said: list[str] = []
    stack.down(place.home, parts=tuple(place.kinds), report=said.append)
    stopped = [line.split()[0] for line in said]
    assert sorted(stopped) == ["alone", "base", "upper"]
    assert stopped.index("upper") < stopped.index("base")


def test_what_a_crashed_part_left_is_ended_before_another_is_started(place: Place) -> None:
    ended = place.up().part("upper").process
    child = place.crash("upper")
    assert processes.wait_until(lambda: not ended.is_alive, 5)
    place.seen.clear()
    lifecycle.restart(place.home, ["upper"], report=place.seen.append)
    assert not child.is_alive
    assert place.order("upper prepared", "upper prepared beside its child") == ["upper prepared"]


def test_parts_that_crashed_together_are_started_again_together(place: Place) -> None:
    first = place.up()
    for name in place.kinds:
        place.crash(name)
    ended = [first.part(name).process for name in place.kinds]
    assert processes.wait_until(lambda: not any(process.is_alive for process in ended), 5)
    place.seen.clear()
    lifecycle.restart(place.home, place.kinds, report=place.seen.append)
    again = stack.load(place.home)
    assert again is not None
    assert all(part.process.is_alive and part.restarts == 1 for part in again.parts.values())
    assert {name: part.ports for name, part in again.parts.items()} == {n: p.ports for n, p in first.parts.items()}
    assert place.order("base ready", "upper prepared") == ["base ready", "upper prepared"]


def test_a_part_that_was_stopped_is_found_where_it_was(place: Place) -> None:
    before = place.up().part("alone").ports
    stack.down(place.home, parts=("alone",))
    assert place.up("alone").part("alone").ports == before


def test_a_part_that_was_told_a_port_that_moved_is_started_anew(place: Place) -> None:
    first = place.up()
    stack.down(place.home, parts=["base"])
    with socket.create_server(("127.0.0.1", first.part("base").ports["only"])):
        second = place.up("base")
    assert second.part("base").ports != first.part("base").ports
    assert not first.part("upper").process.is_alive
    assert second.part("upper").process.is_alive
    assert second.part("upper").ports == first.part("upper").ports
    assert second.part("alone").process == first.part("alone").process


def test_a_part_that_comes_back_where_it_was_disturbs_nobody(place: Place) -> None:
    first = place.up()
    stack.down(place.home, parts=["base"])
    assert place.up("base").part("upper").process == first.part("upper").process


@pytest.mark.parametrize("after", [("base",), ()], ids=["waits for it", "waits for nobody"])
def test_one_that_fails_where_it_moved_and_comes_back_misleads_nobody(place: Place, after: tuple[str, ...]) -> None:
    place.kinds["upper"].after = after
    first = place.up()
    port = first.part("base").ports["only"]
    _crash_and_wait(place, "base")
    with socket.create_server(("127.0.0.1", port)):
        place.kinds["base"].script = "echo broken; exit 1"
        with pytest.raises(Unreachable):
            lifecycle.restart(place.home, ["base"], report=place.seen.append)
    place.kinds["base"].script = WORKS
    for name in ("base", "upper"):  # as the supervisor does until all of them run
        lifecycle.restart(place.home, [name], report=place.seen.append)
    again = stack.load(place.home)
    assert again is not None
    assert again.part("upper").process.is_alive
    assert again.part("upper").told == {"base": again.part("base").ports}


def test_one_that_died_keeps_its_port_however_late_the_kernel_frees_it(place: Place) -> None:
    first = place.up()
    port = first.part("base").ports["only"]
    _crash_and_wait(place, "base")
    with socket.create_server(("127.0.0.1", port)) as late:
        freed = threading.Timer(1, late.close)
        freed.start()
        lifecycle.restart(place.home, ["base"], report=place.seen.append)
        freed.join()
    again = stack.load(place.home)
    assert again is not None
    assert again.part("base").ports["only"] == port
    assert again.part("upper").process == first.part("upper").process


def test_a_part_that_does_not_answer_is_not_running(place: Place) -> None:
    place.up()
    (place.home / "silent-base").touch()
    found = {part.name: part.state for part in stack.status(place.home, place.kinds)}
    assert found == {"base": "not answering", "upper": "running", "alone": "running"}
    place.seen.clear()
    place.up()
    assert place.seen == [
        "already running: upper, alone",
        "base runs and is not answering: `waybill dev down --only base`, then `waybill dev up`",
    ]


def test_what_ran_when_all_was_stopped_is_remembered(place: Place) -> None:
    place.up("base", "alone")
    stack.down(place.home)
    assert wanted(place.home) == ("alone", "base")


def test_what_was_stopped_by_name_is_not(place: Place) -> None:
    place.up()
    stack.down(place.home, parts=["alone"])
    stack.down(place.home)
    assert wanted(place.home) == ("base", "upper")


def test_the_mqtt_broker_is_started_again_with_the_stack_it_ran_in(tmp_path: Path) -> None:
    assert stack.MQTT_BROKER not in stack.startable(tmp_path)
    want(tmp_path, [stack.MQTT_BROKER])
    assert stack.MQTT_BROKER in stack.startable(tmp_path)


def _crash_and_wait(place: Place, name: str) -> None:
    running = stack.load(place.home)
    assert running is not None
    process = running.part(name).process
    place.crash(name)
    assert processes.wait_until(lambda: not process.is_alive, 5)
