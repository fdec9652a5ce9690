"""What travels between driver and worker: a readable head line, then a pickled value.

The head says which code and which process made it, so that a worker of other code refuses before it unpickles what it
may not understand; a refusal is all in the head, so that a driver of other code can read it. The head of whatever a
worker says has what its clock reads (`host_clocks`). Bodies are compressed when they are large (a lane carries what
`scan` has seen). Both engines use it.
"""

from __future__ import annotations

import json
import pickle
import socket
import sys
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any, TypeVar

import zstandard

from connect_core.clock import now_ns
from connect_core.engine.driver import Driver, this_process
from connect_core.engine.host_clocks import Reading
from connect_core.errors import EngineFailed, Failure, Retriable, VersionMismatch
from connect_core.replication.host import boot_id
from connect_core.version import code_version, plugin_versions, running
from connect_core.work import Lane, Outcome, ScanTask

if TYPE_CHECKING:
    from connect_core.sdk.scan import ScanResult

_COMPRESSED_FROM_BYTES = 64 * 1024

Request = TypeVar("Request", Lane, ScanTask)


def request(content: Lane | ScanTask) -> bytes:
    """A lane or a search for a worker that must run the code named in it."""
    systems, pipeline = [content.sink.system], {}
    if isinstance(content, Lane):
        systems, pipeline = [content.source.system, content.sink.system], content.pipeline
    head = {"code": content.code, "driver": this_process(), "plugins": running(systems, pipeline)}
    return _packed(head, content)


def opened(data: bytes, kind: type[Request]) -> Request:
    """The request, in the worker. Raises VersionMismatch when it was made for other code than this process runs, and
    Retriable when a package was replaced meanwhile on this host."""
    head, body = _parted(data)
    if head["code"] != code_version():
        raise VersionMismatch(
            f"The engine runs other code ({code_version()}) than the driver ({head['code']})",
            next_step="Run `waybill engine stop`, then `waybill engine start`",
        )
    if head["plugins"]:
        _check_plugins(head["plugins"], Driver(*head["driver"]))
    content = _unpacked(head, body)
    if not isinstance(content, kind):
        raise TypeError(f"expected {kind.__name__}, got {type(content).__name__}")
    return content


def _check_plugins(theirs: Mapping[str, str], driver: Driver) -> None:
    ours = plugin_versions()
    for name, release in theirs.items():
        if (here := ours.get(name) or "no package") != release:
            what = f"The driver has {release} for {name}, and its worker has {here}"
            if driver.boot_id == boot_id():
                next_step = "It was replaced while the run was at work; the next attempt takes what is installed then"
                raise Retriable(what, where=sys.executable, next_step=next_step)
            where = f"host {socket.gethostname()}"
            raise VersionMismatch(what, where=where, next_step="Install the same packages for its Python")


def driver(data: bytes) -> Driver:
    """Who made a request that could be opened."""
    head, _ = _parted(data)
    return Driver(*head["driver"])


def answer(content: list[Outcome] | dict[int, ScanResult]) -> bytes:
    """What a worker has to say."""
    return _packed(_clock(), content)


def hello() -> bytes:
    """The first message of a worker, and its answer when it is asked what its clock reads."""
    return json.dumps(_clock()).encode() + b"\n"


def reading(data: bytes) -> Reading | None:
    """What the clock of a worker read when it said this. None where a worker of other code does not say it."""
    line, _, _ = data.partition(b"\n")
    clock = json.loads(line).get("clock")
    return Reading(*clock) if clock else None


def refusal(failure: Failure, *, clean: bool) -> bytes:
    """A worker will not do what it is asked. `clean` when it is certain that nothing of it was done."""
    return json.dumps({"refused": asdict(failure), "clean": clean, **_clock()}).encode() + b"\n"


def outcomes(lane: Lane, data: bytes) -> list[Outcome]:
    """The driver's view of the answer to a lane; a refusal counts for each of its ranges."""
    head, body = _parted(data)
    if "refused" in head:
        failure = _failure(head["refused"])
        return [Outcome(wanted.id, None, failure, clean=head["clean"]) for wanted in lane.ranges]
    content: list[Outcome] = _unpacked(head, body)
    return content


def found(data: bytes) -> dict[int, ScanResult]:
    """The driver's view of the answer to a search; a refusal is raised."""
    head, body = _parted(data)
    if "refused" in head:
        raise _failure(head["refused"]).as_error()
    content: dict[int, ScanResult] = _unpacked(head, body)
    return content


def _clock() -> dict[str, Any]:
    return {"clock": [boot_id(), now_ns()]}


def _failure(told: dict[str, str]) -> Failure:
    """A worker of other code may know more of a failure, or less."""
    known = {field.name for field in fields(Failure)}
    return Failure(**{name: value for name, value in told.items() if name in known})


def _packed(head: dict[str, Any], content: object) -> bytes:
    body = pickle.dumps(content, protocol=pickle.HIGHEST_PROTOCOL)
    if len(body) >= _COMPRESSED_FROM_BYTES:
        head = head | {"zstd": len(body)}
        body = zstandard.ZstdCompressor(level=1).compress(body)
    return json.dumps(head).encode() + b"\n" + body


def _parted(data: bytes) -> tuple[dict[str, Any], bytes]:
    line, newline, body = data.partition(b"\n")
    if not newline:
        raise EngineFailed("An answer of the engine was cut off", next_step="Read the engine's log")
    head: dict[str, Any] = json.loads(line)
    return head, body


def _unpacked(head: dict[str, Any], body: bytes) -> Any:
    if "zstd" in head:
        body = zstandard.ZstdDecompressor().decompress(body, max_output_size=head["zstd"])
    return pickle.loads(body)
