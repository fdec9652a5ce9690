"""The records that were rejected, as they were read: listed, shown, exported, discarded. `letter_replays` sends them
again.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from connect_core.errors import ConfigError, Fault
from connect_core.ledger import STATES, Connector, Count, DeadLetter, Ledger, Wanted
from connect_core.sdk.values import Json
from connect_core.service.json_values import plain
from connect_core.service.letter_opening import LetterOpener, key_id_of
from connect_core.service.opened import Opened

__all__ = [
    "STATES",
    "Agree",
    "Count",
    "LettersPreview",
    "Words",
    "chosen",
    "discard",
    "end_of_lines",
    "erase",
    "export",
    "listed",
    "require_known",
    "shown",
    "wanted_of",
    "whole_lines",
    "write_out",
]

SHOWN_BYTES = 64 * 1024
_AT_ONCE = 16
"""So many are read at once for an export: each may hold some megabytes."""


@dataclass(frozen=True)
class Words:
    """What a person says of dead letters, as written; what is empty says nothing. `since` and `until` are times with
    their zone, or how long ago. `state` is one of `STATES`, or `all`."""

    stage: str = ""
    since: str = ""
    until: str = ""
    partition: str = ""
    reason: str = ""
    run: str = ""
    ids: tuple[int, ...] = ()
    state: str = "open"

    def asked(self) -> Json:
        """What is kept of them."""
        return {name: value for name, value in asdict(self).items() if value and name != "state"}


@dataclass(frozen=True)
class LettersPreview:
    """What is about to happen to the letters that were chosen: how many of each partition and stage. `left_out` says
    how many are not meant, and why; `resumed` are replays that go on first. `delivered` of the letters were delivered
    before, or may have been."""

    connector: str
    counts: tuple[Count, ...]
    left_out: Mapping[str, int]
    resumed: tuple[str, ...] = ()
    delivered: int = 0

    @property
    def letters(self) -> int:
        return sum(one.letters for one in self.counts)


Agree = Callable[[LettersPreview], None]
"""Raises when nobody wants it: then nothing is changed."""


def listed(
    opened: Opened, name: str, words: Words = Words(state="all"), *, last: int = 20, below: int | None = None
) -> list[Json]:
    """The newest `last` of a connector, the newest first; without their payloads. With `below` those of a lower
    number."""
    connector = opened.ledger.connector(name)
    if below is not None and below <= 1:
        return []
    wanted = replace(wanted_of(words), newest=below - 1 if below else 0)
    found = opened.ledger.dead_letters(connector.uid, last, wanted, payloads=False)
    return [_told(letter) for letter in found]


def shown(opened: Opened, name: str, number: int) -> Json:
    """One with what it had beside its payload, and its `original`: the first 64 KiB of its bytes."""
    connector = opened.ledger.connector(name)
    kept = _letter(opened.ledger, connector, number)
    letter = LetterOpener(opened.ledger, connector).opened(kept)
    return {**_told(kept), **_attributes(letter), "original": letter.original[:SHOWN_BYTES]}


def export(opened: Opened, name: str, words: Words, path: str, out: TextIO) -> int:
    """Writes them to a new file as JSON lines, oldest first, or to `out` when the path is `-`; how many there were.
    The file is there when it is whole. Raises ConfigError when there is one already, or a key cannot be read."""
    return write_out(_lines(opened, name, words, all_open=path == "-"), path, out)


def write_out(lines: Iterator[str], path: str, out: TextIO) -> int:
    """Of lines that are made as they are taken."""
    return sum(1 for line in lines if out.write(line)) if path == "-" else _write_new(Path(path), lines)


def end_of_lines(exported: int) -> str:
    """The last line of an export by a request: no letter has `exported`."""
    return f"{json.dumps({'exported': exported})}\n"


def whole_lines(opened: Opened, name: str, words: Words) -> Iterator[str]:
    """What `export` writes. What is out cannot be taken back: raises before the first line unless all of them open."""
    return _lines(opened, name, words, all_open=True)


def _lines(opened: Opened, name: str, words: Words, *, all_open: bool) -> Iterator[str]:
    connector, wanted = opened.ledger.connector(name), wanted_of(words)
    require_known(opened.ledger, connector, words)
    opener = LetterOpener(opened.ledger, connector)
    if all_open and opener.is_needed:
        for one in _in_order(opened.ledger, connector, wanted):
            opener.opened(one)
    return (f"{_line(one, opener.opened(one))}\n" for one in _in_order(opened.ledger, connector, wanted))


def discard(opened: Opened, name: str, words: Words, agree: Agree, *, why: str = "") -> Json:
    """Marks them once somebody has agreed; none is deleted. Those that a replay is sending stay as they are."""
    wanted = _agreed(opened, name, words, agree, still_open=True)
    return {"connector": name, "discarded": _done(opened, opened.ledger.discard_dead_letters, name, words, wanted, why)}


def erase(opened: Opened, name: str, words: Words, agree: Agree, *, why: str = "") -> Json:
    """Takes payload, key and headers out of letters that were replayed or discarded, once somebody has agreed."""
    wanted = _agreed(opened, name, words, agree, still_open=False)
    return {"connector": name, "erased": _done(opened, opened.ledger.erase_dead_letters, name, words, wanted, why)}


def chosen(opened: Opened, name: str, words: Words, *, still_open: bool) -> list[Count]:
    """What `discard`, or `erase`, would be asked to agree to."""
    ledger, connector = opened.ledger, opened.ledger.connector(name)
    require_known(ledger, connector, words)
    return ledger.count_dead_letters(connector.uid, _standing(words, still_open))


def _standing(words: Words, still_open: bool) -> Wanted:
    return replace(wanted_of(words), states=tuple(one for one in STATES if (one == "open") == still_open))


def _agreed(opened: Opened, name: str, words: Words, agree: Agree, *, still_open: bool) -> Wanted | None:
    """Which letters that are open, or are no more; None where there are none. What comes while somebody thinks about it
    was not shown, and is not meant."""
    ledger, connector = opened.ledger, opened.ledger.connector(name)
    require_known(ledger, connector, words)
    wanted = _standing(words, still_open)
    newest = max((one.id for one in ledger.dead_letters(connector.uid, 1, wanted, payloads=False)), default=0)
    counts = ledger.count_dead_letters(connector.uid, wanted)
    if not counts:
        return None
    agree(LettersPreview(name, tuple(counts), {}))
    return replace(wanted, newest=newest)


def _done(opened: Opened, deed: Callable[..., int], name: str, words: Words, wanted: Wanted | None, why: str) -> int:
    if wanted is None:
        return 0
    uid = opened.ledger.connector(name).uid
    return deed(uid, wanted, who=opened.settings.user, why=why, asked=words.asked())


def wanted_of(words: Words) -> Wanted:
    """Raises ConfigError for a time that is none, or a state that is none."""
    from connect_core.replication.backfill.request import parse_moment

    now, faults = datetime.now(UTC), []
    moments: dict[str, datetime | None] = {"since": None, "until": None}
    for name in moments:
        if text := getattr(words, name):
            try:
                moments[name] = parse_moment(text, now)
            except ValueError as error:
                faults.append(Fault(name, str(error)))
    if words.state not in (*STATES, "all"):
        faults.append(Fault("state", f"{words.state!r} is none of {', '.join(STATES)}, all"))
    if faults:
        raise ConfigError("Dead letters cannot be chosen so", faults=tuple(faults))
    return Wanted(
        stage=words.stage,
        since=moments["since"],
        until=moments["until"],
        partition=words.partition,
        reason=words.reason,
        run=words.run,
        ids=words.ids,
        states=tuple(one for one in STATES if words.state in (one, "all")),
    )


def require_known(ledger: Ledger, connector: Connector, words: Words) -> None:
    """Raises ConfigError for a number that is no letter of this connector."""
    for number in words.ids:
        _letter(ledger, connector, number)


def _letter(ledger: Ledger, connector: Connector, number: int) -> DeadLetter:
    letter = ledger.dead_letter(number)
    if letter.uid != connector.uid:
        raise ConfigError(
            f"Dead letter {number} is not one of {connector.name}",
            next_step=f"See `waybill dead-letters list {connector.name}`",
        )
    return letter


def _in_order(ledger: Ledger, connector: Connector, wanted: Wanted) -> Iterator[DeadLetter]:
    behind = 0
    while some := ledger.dead_letters_behind(connector.uid, wanted, behind, _AT_ONCE):
        yield from some
        behind = some[-1].id


def _write_new(path: Path, lines: Iterator[str]) -> int:
    if path.exists():
        raise ConfigError("There is a file of this name already", where=str(path), next_step="Name another one")
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        descriptor = os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            written = sum(1 for line in lines if file.write(line))
            file.flush()
            os.fsync(file.fileno())
        part.rename(path)
    except OSError as error:
        words = f"The file cannot be written: {error.strerror}"
        raise ConfigError(words, where=str(path), next_step="Name a file in a folder that you may write") from error
    finally:
        with suppress(OSError):
            part.unlink()
    return written


def _line(kept: DeadLetter, letter: DeadLetter) -> str:
    told = {**_told(kept), **_attributes(letter), "payload": _payload(letter)}
    return json.dumps(told, default=plain, ensure_ascii=False)


def _payload(letter: DeadLetter) -> Json:
    """As text where it is text, else as base64; nothing where the record had none."""
    if letter.attributes and letter.attributes.get("no_value"):
        return {}
    try:
        return {"text": letter.original.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(letter.original).decode()}


def _attributes(letter: DeadLetter) -> Json:
    """What the record had beside its payload. Nothing of that is known of one that is kept in part."""
    kept = letter.attributes or {}
    at = kept.get("timestamp")
    return {
        "key": kept.get("key"),
        "tags": kept.get("tags"),
        "headers": kept.get("headers", []),
        "timestamp_ms": at,
        "whole": letter.attributes is not None,
    }


def _told(letter: DeadLetter) -> Json:
    reason = letter.reason
    return {
        "id": letter.id,
        "state": letter.state,
        "stream": letter.stream,
        "partition": letter.partition.key,
        "incarnation": letter.incarnation,
        "offset": letter.offset,
        "ordinal": letter.ordinal,
        "stage": reason.stage,
        "kind": reason.kind,
        "message": reason.message,
        "topic": letter.topic,
        "encrypted_with": key_id_of(letter),
        "run": letter.run_id,
        "stored_at": letter.stored_at,
        "replay": letter.replay,
        "replayed_by": letter.replayed_run,
        "replayed_at": letter.replayed_at,
        "discarded_at": letter.discarded_at,
        "errors_sink": _on_its_way(letter),
        "errors_sink_run": letter.sink_run,
        "errors_sink_refused": letter.sink_refused,
    }


def _on_its_way(letter: DeadLetter) -> str:
    """To `errors.sink`: nothing for one that does not go there."""
    if not letter.to_sink:
        return ""
    if letter.sink_run is None:
        return "waiting"
    return "refused" if letter.sink_refused else "sent"
