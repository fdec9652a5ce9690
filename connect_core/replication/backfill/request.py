"""What a person, a form or a schedule asks for when a backfill or a replay is to begin: words in, values out. Pure.

The same words by command, REST or Airflow's trigger form; what they come to is found in the source (`select`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple

from connect_core.config.units import parse_seconds
from connect_core.errors import ConfigError, Fault
from connect_core.sdk.records import Partition
from connect_core.sdk.values import Json

Kind = Literal["backfill", "replay"]
MAX_ID_LENGTH = 60

_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*", re.ASCII)
_SPAN = re.compile(r"(.*):(\d*)-(\d*)", re.DOTALL)


class Span(NamedTuple):
    """`[begin, end)` of the partition that `partition` names, perhaps in short; None: from the oldest, to the newest
    there is."""

    partition: str
    begin: int | None
    end: int | None


class Moments(NamedTuple):
    """Records stored in `[begin, end)`."""

    begin: datetime
    end: datetime


@dataclass(frozen=True)
class Request:
    """As written. Either times (`begin`, and `end`, empty: now), or `ranges`, or the `run` that is replayed; or none of
    them, to go on with what was begun under `id`. `sink` are KEY=VALUE."""

    begin: str = ""
    end: str = ""
    ranges: tuple[str, ...] = ()
    run: str = ""
    sink: tuple[str, ...] = ()
    id: str = ""
    accept_gaps: bool = False
    why: str = ""

    @property
    def kind(self) -> Kind:
        return "replay" if self.run else "backfill"

    def says_what(self) -> bool:
        return bool(self.begin or self.end or self.ranges or self.run)

    def asked(self) -> Json:
        """What is kept of it with the backfill, and compared when somebody goes on with it by the same words."""
        words = {"from": self.begin, "to": self.end, "ranges": list(self.ranges), "run": self.run}
        return {name: value for name, value in {**words, "sink": list(self.sink)}.items() if value}


def check(request: Request) -> None:
    """Raises ConfigError with everything that is wrong with the words, whatever the connector."""
    ways = [name for name, given in _ways(request).items() if given]
    faults = [Fault("", f"{' and '.join(ways)} are given: choose one")] if len(ways) > 1 else []
    if request.end and not request.begin and not request.ranges and not request.run:
        faults.append(Fault("from", "is missing: --to alone does not say where to start"))
    if request.id and (not _ID.fullmatch(request.id) or len(request.id) > MAX_ID_LENGTH):
        faults.append(Fault("id", f"{request.id!r} must be 1 to {MAX_ID_LENGTH} of A-Z a-z 0-9 . _ -"))
    if not request.says_what() and not request.id:
        faults.append(Fault("", "give --from (and --to), --range, or the --id of one to resume"))
    faults += [*_faults("range", parse_span, request.ranges), *_faults("sink", parse_option, request.sink)]
    if faults:
        raise ConfigError(f"This is not a {request.kind}", faults=tuple(faults))


def parse_span(text: str) -> Span:
    """`PARTITION:BEGIN-END`; the partition's key may hold colons. Raises ValueError."""
    found = _SPAN.fullmatch(text)
    if found is None:
        raise ValueError(
            f"{text!r} is not PARTITION:BEGIN-END, as orders/broker-a/0:100-200; BEGIN or END may be empty"
        )
    begin, end = (int(place) if place else None for place in found.groups()[1:])
    if begin is not None and end is not None and begin >= end:
        raise ValueError(f"{text!r} ends before it begins")
    return Span(found[1], begin, end)


def parse_option(text: str) -> tuple[str, str]:
    """`KEY=VALUE`. Raises ValueError."""
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise ValueError(f"{text!r} is not KEY=VALUE, as path=/data/again.log")
    return key, value


def parse_moment(text: str, now: datetime) -> datetime:
    """A time with its zone, or a duration before `now`. Raises ValueError."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    advice = 'write a time with its zone, such as 2026-11-01T00:00:00Z, or how long ago, such as "2h"'
    if moment is not None and moment.tzinfo is None:
        raise ValueError(f"{text!r} has no zone: {advice}")
    try:
        if moment is not None:
            return moment.astimezone(UTC)
        return now - timedelta(seconds=parse_seconds(text))
    except (ValueError, OverflowError):
        raise ValueError(f"{text!r} is not a time: {advice}") from None


def moments(request: Request, now: datetime) -> Moments:
    """Raises ConfigError when they are no times or in the wrong order."""
    faults: list[Fault] = []
    found: list[datetime] = []
    for name, text in (("from", request.begin), ("to", request.end)):
        try:
            found.append(parse_moment(text, now) if text else now)
        except ValueError as error:
            faults.append(Fault(name, str(error)))
    if not faults and found[0] >= found[1]:
        faults.append(Fault("from", f"{found[0].isoformat()} is not before {found[1].isoformat()}"))
    if faults:
        raise ConfigError("Records cannot be chosen by these times", faults=tuple(faults))
    return Moments(*found)


def chosen(text: str, partitions: Iterable[Partition]) -> Partition:
    """The partition of that key, else the only one whose key ends with, else the only one that holds, the text. Raises
    ValueError that lists them."""
    by_key = {partition.key: partition for partition in partitions}
    for keys in ([text] if text in by_key else [], _ending(by_key, text), [key for key in by_key if text in key]):
        if len(keys) == 1:
            return by_key[keys[0]]
    meant = [key for key in by_key if text in key]
    what = f"{text!r} may be any of" if meant else f"there is no partition {text!r}; there are"
    raise ValueError(f"{what} {', '.join(sorted(meant or by_key)) or 'none'}")


def stream_of(request: Request, new_id: str) -> str:
    """`backfill-ID` or `replay-ID`; a new id when none is given."""
    return f"{request.kind}-{request.id or new_id}"


def moments_of_tick(every_s: float, tick: datetime) -> Moments:
    """What a tick of an `every` schedule has to move when it is caught up: what came since the tick before."""
    return Moments(tick - timedelta(seconds=every_s), tick)


def _ways(request: Request) -> Mapping[str, bool]:
    times = bool(request.begin or request.end)
    return {"times": times, "--range": bool(request.ranges), "--run": bool(request.run)}


def _faults(name: str, parse: Callable[[str], object], given: Sequence[str]) -> Iterable[Fault]:
    for text in given:
        try:
            parse(text)
        except ValueError as error:
            yield Fault(name, str(error))


def _ending(keys: Iterable[str], text: str) -> list[str]:
    return [key for key in keys if key.endswith(text)]
