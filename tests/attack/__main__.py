"""`make attack`: a whole stack with four connectors that Airflow runs, and everything done to it that a bad day does.

    python -m tests.attack [--seed N] [--seconds N]

Processes are killed, stopped and continued; connectors are paused, changed, moved back, filled again and replayed;
logs are rotated: for so many seconds, while records keep coming. Then it is let settle, and sources and targets are
compared record by record. Prints its seed and every deed with its time. A seed makes the same choices again; what they
meet is up to the machine. Exit code 1, and the folder stays, when a record was lost, was repeated and no receipt tells
it, or came out of order.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from connect_core import stack
from tests.attack.checker import Java, Link, lines_of
from tests.attack.deeds import Attacker
from tests.attack.feeding import LINES_PER_S, TELEGRAMS_PER_S, Devices, Feeding, Files, record
from tests.attack.world import ACROSS, COPY, DEVICES, FILES_IN, LINES, OUT, TELEGRAMS, World

_MEMORY, _ROOM_BYTES = Path("/dev/shm"), 4 << 30
_PAUSE_S = (1.0, 6.0)
_SETTLE_LIMIT_S = 420.0
_LOOK_EVERY_S = 5.0
_WAIT_S = 1.0
_FIRST_LIMIT_S = 400.0
_ALL = (FILES_IN, OUT, ACROSS, DEVICES)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.attack", description=__doc__)
    parser.add_argument("--seed", type=int, default=None, help="by default one of the clock")
    parser.add_argument("--seconds", type=int, default=300, help="how long the stack is attacked")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else int(time.time())
    folder = Path(tempfile.mkdtemp(prefix="waybill-attack-", dir=_in_memory()))
    folder.chmod(0o711)
    print(f"seed {seed}, {options.seconds} s, in {folder}", flush=True)
    world = World(folder)
    try:
        faults = attack(world, seed, options.seconds)
    finally:
        world.end()
    for fault in faults:
        print(f"BROKEN: {fault}")
    if not faults:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"seed {seed}: {'broken' if faults else 'holds'}", flush=True)
    return 1 if faults else 0


def _in_memory() -> Path | None:
    """A disk that stalls has held a broker back for over a minute. None, the usual place, where there is no room."""
    return _MEMORY if _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free >= _ROOM_BYTES else None


def attack(world: World, seed: int, seconds: float) -> list[str]:
    """What is wrong in the end; empty when everything is where it belongs."""
    world.start()
    files, devices = Files(world.folder), Devices(lambda: world.port(stack.MQTT_BROKER, "mqtt"))
    lines = Feeding(files.write, LINES_PER_S)
    begin(world)
    telegrams = Feeding(devices.publish, TELEGRAMS_PER_S)
    attacker = Attacker(world, files, devices, random.Random(f"{seed} processes and logs"))
    person = Attacker(world, files, devices, random.Random(f"{seed} commands"))
    world.log("everything moves: the attack begins")
    until = time.monotonic() + seconds
    typing = threading.Thread(target=_again_and_again, args=(person.operate, person.rng, until))
    typing.start()
    _again_and_again(attacker.strike, attacker.rng, until)
    attacker.stopped.go_on()
    typing.join()
    lines.end()
    telegrams.end()
    world.log("no more records, no more deeds")
    return settle(world, files, devices)


def _again_and_again(act: Callable[[], None], rng: random.Random, until: float) -> None:
    while time.monotonic() < until:
        act()
        time.sleep(rng.uniform(*_PAUSE_S))


def begin(world: World) -> None:
    """Applies the connectors one after the other, each when what it reads is there."""
    for name in _ALL:
        code, out = world.apply(name)
        if code:
            raise SystemExit(f"{name} could not be applied: {out}")
        world.log(f"applied {name}")
        if name == FILES_IN:
            _await(lambda: bool(world.json("receipts", FILES_IN).get("receipts")), "the first receipt")
    # What is published before the first run has made its session is kept for nobody.
    _await(lambda: any(run["state"] == "done" for run in _runs(world, DEVICES)), "a session of devices-in")


def _await(there: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + _FIRST_LIMIT_S
    while not there():
        if time.monotonic() > until:
            raise SystemExit(f"not within {_FIRST_LIMIT_S:g} s: {what}")
        time.sleep(_WAIT_S)


def _runs(world: World, name: str) -> list[dict[str, Any]]:
    return list(world.json("runs", name).get("runs", []))


def settle(world: World, files: Files, devices: Devices) -> list[str]:
    """Waits until everything has arrived and nothing moves any more; what is wrong then, or when the time is over."""
    world.revive()
    for name in _ALL:
        _await(lambda name=name: world.command("connectors", "resume", name)[0] == 0, f"{name} is resumed")
    until = time.monotonic() + _SETTLE_LIMIT_S
    before: list[str] = []
    while True:
        links = compared(world, files, devices)
        said = [str(link) for link in links]
        faults = [f"{link.name}: {fault}" for link in links for fault in link.faults]
        if (not faults and said == before) or time.monotonic() > until:
            break
        before = said
        world.log(f"not yet: {'; '.join(faults) or 'seen once'}")
        time.sleep(_LOOK_EVERY_S)
    for line in said:
        world.log(line)
    faults += _miscounted(world, links)
    if faults:
        _evidence(world)
    return faults


def compared(world: World, files: Files, devices: Devices) -> list[Link]:
    java = _java(world)
    lines, copy, telegrams = java.topics(LINES, COPY, TELEGRAMS)
    written = {origin: [record(origin, number) for number in range(count)] for origin, count in files.counts.items()}
    sure = {"device": [record("device", number) for number in devices.sure]}
    unsure = frozenset(record("device", number) for number in range(devices.sent)).difference(sure["device"])
    # Backfills and replays have files of their own; bytes that were set aside belong to nobody.
    out = lines_of(path for path in (world.folder / "out").glob("lines*") if ".unsettled-" not in path.name)
    links = [
        Link(FILES_IN, written, lines, _receipts(world, FILES_IN)),
        Link(OUT, lines, out, _receipts(world, OUT)),
        Link(ACROSS, lines, copy, _receipts(world, ACROSS)),
        Link(DEVICES, sure, telegrams, _receipts(world, DEVICES), unsure),
    ]
    return [link.compare() for link in links]


def _miscounted(world: World, links: list[Link]) -> list[str]:
    """Topics of which the admin tool counts another number than the client has read."""
    read = {link.name: sum(map(len, link.there.values())) for link in links}
    java = _java(world)
    counted = {name: java.stored(topic) for name, topic in ((FILES_IN, LINES), (ACROSS, COPY), (DEVICES, TELEGRAMS))}
    return [
        f"{name}: the admin tool counts {count} messages in its topic, the client has read {read[name]}"
        for name, count in counted.items()
        if count != read[name]
    ]


def _java(world: World) -> Java:
    until = time.monotonic() + _SETTLE_LIMIT_S
    while (broker := world.pid(stack.BROKER)) is None:
        if time.monotonic() > until:
            raise SystemExit("the broker does not come back")
        time.sleep(_WAIT_S)
    return Java(broker, f"127.0.0.1:{world.port(stack.NAME_SERVER, 'remoting')}", world.folder / "java")


def _receipts(world: World, name: str) -> list[dict[str, Any]]:
    found = world.json("receipts", name, "--stream", "all", "--last", "100000")
    return list(found.get("receipts", []))


def _evidence(world: World) -> None:
    """What a person would look at first."""
    for words in (("dev", "status"), ("doctor",), ("lag",), *(("runs", name, "--last", "5") for name in _ALL)):
        print(
            f"--- waybill {' '.join(words)}\n{world.command(*words, '--wide' if words[0] != 'doctor' else '--json')[1]}"
        )
    print(f"--- the supervisor\n{stack_log(world)}")


def stack_log(world: World) -> str:
    lines = (world.home / "logs" / "supervisor.log").read_text().splitlines()
    return "\n".join(line for line in lines if line[:2] == "20")[-6000:]


if __name__ == "__main__":
    sys.exit(main())
