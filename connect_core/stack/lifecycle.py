"""Starts, stops and looks at the local stack of one home. The command line, the tests and `make demo` call it.

`up` starts what is not running yet, side by side but for parts that come after others, each until a client's round trip
has worked; `down` stops by recorded identity, in the other direction; `status` looks. One lock in the home puts calls
in a row, from whatever process. Homes know nothing of each other, so any number of stacks live side by side. Nothing
outside the home is touched but the cache.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from pathlib import Path

from connect_core.errors import Unreachable
from connect_core.stack import airflow, processes, supervision
from connect_core.stack.jars import Report
from connect_core.stack.locking import locked
from connect_core.stack.mqtt_broker import MqttBroker
from connect_core.stack.parts import REST, RUNNING, Kind, Options, Site
from connect_core.stack.ports import is_free
from connect_core.stack.postgresql import PostgreSQL
from connect_core.stack.record import Stack, StackPart, load, save, want, wanted
from connect_core.stack.rest import Rest
from connect_core.stack.rocketmq import Broker, NameServer
from connect_core.stack.spark_connect import SparkConnect

_DATA: tuple[Kind, ...] = (NameServer(), Broker(), PostgreSQL(), SparkConnect())
KINDS: Mapping[str, Kind] = {kind.name: kind for kind in (*_DATA, *airflow.KINDS, Rest(), MqttBroker())}
"""Each behind those it comes after."""
ALL = tuple(KINDS)
DATA_PARTS = tuple(kind.name for kind in _DATA)
"""Without Airflow: all that runs from the command line need."""
AIRFLOW_PARTS = tuple(kind.name for kind in airflow.KINDS)

READY_LIMIT_S = 300.0
"""Generous: a part that died is noticed at once, and a disk that stalls has held a broker back for over a minute."""
_READY_POLL_S = 0.1
_FAILED_GRACE_S = 5.0
_PORTS_LIMIT_S = 5.0
_TAIL_LINES = 12


@dataclass(frozen=True)
class PartStatus:
    """What `status` found: `state` is `stopped` (never started, or stopped on purpose), `dead`, or what a part whose
    process lives does (`parts.Condition`): only one that answers is `running`."""

    name: str
    state: str
    pid: int | None
    ports: Mapping[str, int]
    version: str
    since: float | None
    restarts: int
    log: Path


def startable(home: Path | None = None) -> tuple[str, ...]:
    """What is started unless parts are named: those whose programs are installed (Airflow is an extra of this package,
    and brings what the server of REST calls needs), and those of `home` that ran when it was stopped. The MQTT broker,
    which few need, is started by name first."""
    usual = (*DATA_PARTS, *AIRFLOW_PARTS, REST) if airflow.is_installed() else DATA_PARTS
    before = wanted(home) if home else ()
    return tuple(name for name in ALL if name in usual or name in before)


def up(
    home: Path,
    *,
    parts: Iterable[str] = (*DATA_PARTS, *AIRFLOW_PARTS),
    supervise: bool = True,
    options: Options | None = None,
    report: Report = lambda _: None,
) -> Stack:
    """Starts those of `parts` that do not run, and the supervisor. `options` of a running stack are kept.

    When a part fails the others stay: the error names it with the end of its log, and a second call tries it again.
    """
    home = home.absolute()
    asked = [KINDS[name] for name in parts]
    with _home_lock(home):
        stack = load(home) or Stack(home, options or Options())
        if not any(part.process.is_alive for part in stack.parts.values()):
            stack = replace(stack, options=options or stack.options)
        missing = [kind for kind in asked if not _runs(stack, kind.name)]
        there = [kind.name for kind in asked if kind not in missing]
        if missing:
            want(home, {*wanted(home), *stack.parts, *(kind.name for kind in missing)})
            stack = _Start(stack, report).all_of(missing)
        _tell_of(stack, there, report, as_well=not missing)
        if supervise:
            stack = supervision.ensure(stack)
    return stack


def down(home: Path, *, parts: Iterable[str] | None = None, report: Report = lambda _: None) -> None:
    """Stops `parts`, each when those that come after it have ended, and first the supervisor when nothing is left.

    All of them unless they are named. What is named is not brought back by the next `up` of all.
    """
    home = home.absolute()
    names = set(ALL if parts is None else parts)
    if parts is not None and wanted(home):
        want(home, {*wanted(home)} - names)
    stack = load(home)
    if stack is None:
        report("nothing is running")
        return
    if not stack.without(*names).parts:
        supervision.end(stack)
    with _home_lock(home):
        stack = load(home)
        if stack is None:
            return
        leaving = names & stack.parts.keys()
        while leaving:
            needed = {before for name in leaving for before in KINDS[name].after}
            stack = _stop_all(stack, sorted(leaving - needed), report)
            leaving &= needed
        if not stack.parts:
            save(replace(stack, supervisor=None))


def kill(home: Path, name: str) -> None:
    """Ends one part with SIGKILL and leaves it in the record, as a crash would. For tests."""
    stack = load(home)
    if stack is not None:
        processes.stop(stack.part(name).process, sign=signal.SIGKILL)


def status(home: Path, names: Iterable[str] = ALL) -> list[PartStatus]:
    """One line a part, in the order of `names`. Each part that runs is asked something: one that does not answer costs
    some seconds."""
    stack = load(home.absolute()) or Stack(home.absolute(), Options())
    asked = tuple(names)
    with ThreadPoolExecutor(max(len(asked), 1)) as threads:
        return list(threads.map(lambda name: _status_of(stack, name), asked))


def restart(home: Path, names: Iterable[str], *, report: Report) -> None:
    """Starts recorded parts again that have died, side by side, on the ports they had. Called by the supervisor."""
    with _home_lock(home):
        stack = load(home)
        if stack is None:
            return
        dead = [part for name in names if (part := stack.parts.get(name)) is not None and not part.process.is_alive]
        for part in dead:
            lines = log_tail(_log(stack, part.name))
            report(f"{part.name} (pid {part.process.pid}) has ended; its last lines:\n{lines}")
        if dead:
            restarts = {part.name: part.restarts + 1 for part in dead}
            _Start(stack, report, restarts).all_of([KINDS[part.name] for part in dead])


def log_tail(path: Path, lines: int = _TAIL_LINES) -> str:
    """The last lines of a log; empty when there is none."""
    try:
        with path.open("rb") as log:
            log.seek(max(0, path.stat().st_size - 16_384))
            text = log.read().decode(errors="replace")
    except FileNotFoundError:
        return ""
    return "\n".join(text.strip().splitlines()[-lines:])


class _Start:
    """One call's starting of several parts: each in a thread, the record written as soon as a process exists."""

    def __init__(self, stack: Stack, report: Report, restarts: Mapping[str, int] | None = None) -> None:
        self._stack = stack
        self._before = stack
        self._report = report
        self._restarts = restarts or {}
        self._writing = threading.Lock()
        self._given_up = threading.Event()

    def all_of(self, kinds: list[Kind]) -> Stack:
        """Returns when all are ready; after a failure of one the others are waited for, then the error is raised."""
        (self._stack.home / "logs").mkdir(parents=True, exist_ok=True)
        self._end_remains(kinds)
        ports = self._choose_ports(kinds)
        misled = self._misled(ports)
        # They stay in the record: when the one that moved does not start, they wait for it as parts that died.
        _end_all(self._stack, [kind.name for kind in misled], self._report)
        ports |= {kind.name: self._stack.last_ports[kind.name] for kind in misled}
        kinds = [KINDS[name] for name in KINDS if name in ports]
        neighbours = self._neighbours(ports)
        starts: dict[str, Future[None]] = {}
        with ThreadPoolExecutor(len(kinds)) as threads:
            for kind in kinds:
                site = Site(self._stack.home, ports[kind.name], neighbours, self._stack.options)
                before = {name: starts.get(name) for name in kind.after}
                starts[kind.name] = threads.submit(self._one, kind, site, before)
            try:
                wait(starts.values())
            except BaseException:
                self._given_up.set()
                raise
        failed = [error for start in starts.values() if (error := start.exception()) is not None]
        for error in failed[1:]:
            self._report(str(error))
        if failed:
            raise failed[0]
        return self._stack

    def _misled(self, ports: Mapping[str, Mapping[str, int]]) -> list[Kind]:
        """Those that run and were started with other ports of a part than it has, or is about to have.

        By what each was told, not by what has just moved: a part may have moved, told others so, failed to start there
        and come back to where it was.
        """
        now = self._neighbours(ports)
        running = [kind for kind in KINDS.values() if kind.name not in ports and _runs(self._stack, kind.name)]
        return [kind for kind in running if self._was_misled(kind, now)]

    def _was_misled(self, kind: Kind, now: Mapping[str, Mapping[str, int]]) -> bool:
        told = {**self._stack.last_ports, **self._stack.parts[kind.name].told}
        return any(told.get(name, now[name]) != now[name] for name in kind.told if name in now)

    def _neighbours(self, ports: Mapping[str, Mapping[str, int]]) -> dict[str, Mapping[str, int]]:
        return {name: part.ports for name, part in self._stack.parts.items()} | dict(ports)

    def _choose_ports(self, kinds: list[Kind]) -> dict[str, Mapping[str, int]]:
        taken = {port for part in self._stack.parts.values() for port in part.ports.values()}
        chosen: dict[str, Mapping[str, int]] = {}
        for kind in kinds:
            usual = kind.well_known if self._stack.options.well_known_ports else {}
            last = self._stack.last_ports.get(kind.name, {})
            self._await_ports(kind.name, last)
            chosen[kind.name] = kind.choose_ports(last or usual, taken - set(last.values()))
            taken |= set(chosen[kind.name].values())
        return chosen

    def _await_ports(self, name: str, last: Mapping[str, int]) -> None:
        """Until a part that died has left its ports: the kernel frees them when the last of its threads is gone, which
        may be after its process looks dead. What moves misleads whoever was told where it is."""
        if name in self._before.parts:
            processes.wait_until(lambda: all(is_free(port) for port in last.values()), _PORTS_LIMIT_S)

    def _one(self, kind: Kind, site: Site, before: Mapping[str, Future[None] | None]) -> None:
        for name, start in before.items():
            self._await_other(kind, name, start)
        begun = time.monotonic()
        kind.prepare(site, lambda line: self._report(f"{kind.name}: {line}"))
        part = self._spawn(kind, site)
        try:
            self._await_ready(kind, site, part)
            kind.welcome(site)
        except BaseException:
            processes.stop(part.process, sign=kind.stop_signal, grace_s=_FAILED_GRACE_S)
            self._forget(part)
            raise
        where = ", ".join(str(port) for port in site.ports.values())
        on = f" on {where}" if where else ""
        self._report(f"{kind.name} {part.version} ready{on} ({time.monotonic() - begun:.1f} s)")

    def _await_other(self, kind: Kind, name: str, start: Future[None] | None) -> None:
        """Until the part that this one comes after is ready: it is being started in this call, or runs already."""
        there = start.exception() is None if start else _runs(self._stack, name)
        if not there:
            raise Unreachable(
                f"{kind.name} was not started: it needs the {name}, which is not running",
                where=str(self._stack.home),
                next_step=f"Run `waybill dev up --only {name} --only {kind.name}`",
            )

    def _end_remains(self, kinds: list[Kind]) -> None:
        """Ends what processes that died have left in their sessions, before others take their places and ports.

        An executor worker of a killed scheduler would work on beside its successor, and the task in it beside its own
        retry. Ended here they are dead for certain: their leases are proven free, and the retry goes on at once.
        """
        for kind in kinds:
            known = self._before.parts.get(kind.name)
            if known is not None:
                processes.stop(known.process, sign=signal.SIGKILL)

    def _spawn(self, kind: Kind, site: Site) -> StackPart:
        launch = kind.launch(site)
        with self._writing:
            self._stop_when_given_up(kind)
            process = processes.start(launch)
            version, facts = kind.version(site), kind.facts(site)
            restarts = self._restarts.get(kind.name, 0)
            told = {name: site.neighbours[name] for name in kind.told if name in site.neighbours}
            part = StackPart(kind.name, process, site.ports, version, facts, time.time(), restarts, told)
            self._stack = self._stack.having(part)
            save(self._stack)
        return part

    def _await_ready(self, kind: Kind, site: Site, part: StackPart) -> None:
        log = site.log(kind.name)
        deadline = time.monotonic() + READY_LIMIT_S
        while not kind.is_ready(site, log.read_text(errors="replace")):
            self._stop_when_given_up(kind)
            self._stop_without_others(kind)
            ended = not part.process.is_alive
            if ended or time.monotonic() > deadline:
                what = "ended while it started" if ended else f"was not ready within {READY_LIMIT_S:.0f} s"
                raise Unreachable(
                    f"{kind.name} {what}; its last lines:\n{log_tail(log)}\n",
                    where=str(log),
                    next_step=f"{_remedy(site, ended)} and run it again; the other parts were kept",
                )
            time.sleep(_READY_POLL_S)

    def _stop_without_others(self, kind: Kind) -> None:
        """What it needs may end while it starts: it would never be ready, and whoever waits for it restarts nothing."""
        for name in kind.after:
            if not _runs(self._stack, name):
                raise Unreachable(
                    f"{kind.name} was starting, and the {name}, which it needs, has ended",
                    where=str(self._stack.home / "logs" / f"{name}.log"),
                    next_step="Run `waybill dev up`",
                )

    def _stop_when_given_up(self, kind: Kind) -> None:
        if self._given_up.is_set():
            raise Unreachable(f"The start of {kind.name} was interrupted", next_step="Run `waybill dev up` again")

    def _forget(self, part: StackPart) -> None:
        """Puts the record back to what it was: a part that died stays in it for the supervisor, a new one does not."""
        before = self._before.parts.get(part.name)
        with self._writing:
            self._stack = self._stack.having(before) if before else self._stack.without(part.name)
            save(self._stack)


def _remedy(site: Site, ended: bool) -> str:
    """What helps a part that did not start. Another program may have taken its port since that was chosen."""
    lost = [str(port) for port in site.ports.values() if ended and not is_free(port)]
    return f"Leave port {' and '.join(lost)} to the program that has it now" if lost else "Fix what the log reports"


def _stop_all(stack: Stack, names: list[str], report: Report) -> Stack:
    _end_all(stack, names, report)
    stack = stack.without(*names)
    save(stack)
    return stack


def _end_all(stack: Stack, names: list[str], report: Report) -> None:
    with ThreadPoolExecutor(max(len(names), 1)) as threads:
        for line in threads.map(lambda name: _stop_one(stack.parts[name]), names):
            report(line)


def _stop_one(part: StackPart) -> str:
    kind = KINDS[part.name]
    begun = time.monotonic()
    was_alive = part.process.is_alive
    obeyed = processes.stop(part.process, sign=kind.stop_signal, grace_s=kind.stop_grace_s)
    how = "stopped" if obeyed else "had to be killed"
    return f"{part.name} {how if was_alive else 'was not running'} ({time.monotonic() - begun:.1f} s)"


def _status_of(stack: Stack, name: str) -> PartStatus:
    log = _log(stack, name)
    part = stack.parts.get(name)
    if part is None:
        return PartStatus(name, "stopped", None, {}, "", None, 0, log)
    state = KINDS[name].condition(_site(stack, part)) if part.process.is_alive else "dead"
    return PartStatus(name, state, part.process.pid, part.ports, part.version, part.since, part.restarts, log)


def _site(stack: Stack, part: StackPart) -> Site:
    neighbours = {name: other.ports for name, other in stack.parts.items()}
    return Site(stack.home, part.ports, neighbours, stack.options)


def _tell_of(stack: Stack, names: list[str], report: Report, *, as_well: bool) -> None:
    """Of parts that had not to be started: which of them are no use as they are, and, when asked, which are."""
    found = {name: KINDS[name].condition(_site(stack, stack.parts[name])) for name in names}
    well = [name for name in names if found[name] == RUNNING]
    if well and as_well:
        report(f"already running: {', '.join(well)}")
    for name in names:
        if name not in well:
            report(f"{name} runs and is {found[name]}: `waybill dev down --only {name}`, then `waybill dev up`")


def _log(stack: Stack, name: str) -> Path:
    return stack.home / "logs" / f"{name}.log"


def _runs(stack: Stack, name: str) -> bool:
    part = stack.parts.get(name)
    return part is not None and part.process.is_alive


@contextlib.contextmanager
def _home_lock(home: Path) -> Iterator[None]:
    with locked(home / "stack.lock"):
        yield
