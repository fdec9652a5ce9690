"""Dead letters are sent again: those that a person chooses, through the document of today, each record once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from connect_core import engine
from connect_core.errors import ConfigError, Fault
from connect_core.ledger import REPLAY_KIND, UNFINISHED, Backfill, Connector, LetterChoice, Wanted
from connect_core.replication.backfill.letters import begun_letters
from connect_core.replication.backfill.request import parse_option
from connect_core.replication.driver.prepare import run_context
from connect_core.sdk.values import Json
from connect_core.service import backfill_runs
from connect_core.service.dead_letters import Agree, LettersPreview, Words, require_known, wanted_of
from connect_core.service.opened import AtWork, Opened
from connect_core.service.runs import How

__all__ = ["Replay", "preview", "replay"]


@dataclass(frozen=True)
class Replay:
    """What a person wants: letters by `words`; with `again` also what was replayed, or may have been. `sink` are
    KEY=VALUE."""

    words: Words
    again: bool = False
    sink: tuple[str, ...] = ()
    why: str = ""


def replay(opened: AtWork, name: str, wanted: Replay, agree: Agree, how: How) -> Json:
    """Goes on with the replays of this connector that are not over, then sends what was chosen; once somebody has
    agreed. Each in `replays` as a backfill is told; `left_out` says why how many letters are not sent."""
    connector, chosen, sink = opened.ledger.connector(name), wanted_of(wanted.words), _options(wanted.sink)
    choice, begun = _choice(opened, connector, wanted)
    told = {"connector": name, "left_out": choice.left_out}
    if not choice.sent and not begun:
        return {**told, "replays": []}
    agree(_preview_of(name, choice, begun))
    replays = [backfill_runs.resume(opened, name, stream, how) for stream in begun]
    if choice.sent and (stored := _begun(opened, connector, wanted, chosen, choice, sink, how)):
        replays.append(backfill_runs.resume(opened, name, stored.stream, how))
    return {**told, "replays": replays}


def preview(opened: Opened, name: str, wanted: Replay) -> LettersPreview:
    """What `replay` shows before it begins; raises as it does."""
    _options(wanted.sink)
    return _preview_of(name, *_choice(opened, opened.ledger.connector(name), wanted))


def _choice(opened: Opened, connector: Connector, wanted: Replay) -> tuple[LetterChoice, list[str]]:
    """The letters, and the streams of replays that are not over."""
    ledger = opened.ledger
    require_known(ledger, connector, wanted.words)
    begun = [one.stream for one in ledger.backfills(connector.uid) if _is_begun(one)][::-1]
    partitions = ledger.partitions(connector.uid).keys()
    chosen = wanted_of(wanted.words)
    return ledger.choose_dead_letters(connector.uid, chosen, partitions, again=wanted.again), begun


def _preview_of(name: str, choice: LetterChoice, begun: Sequence[str]) -> LettersPreview:
    return LettersPreview(name, choice.counts, choice.left_out, tuple(begun), choice.delivered)


def _begun(
    opened: AtWork,
    connector: Connector,
    wanted: Replay,
    chosen: Wanted,
    choice: LetterChoice,
    sink: Mapping[str, str],
    how: How,
) -> Backfill | None:
    with how.listening() as listener:
        nobody = engine.engine("inline")  # a context has one; nothing is executed yet
        live = run_context(opened.ledger, opened.settings, opened.home, connector, nobody, listener)
        return begun_letters(
            live,
            opened.settings,
            chosen,
            choice,
            again=wanted.again,
            sink=sink,
            asked=wanted.words.asked() | ({"again": True} if wanted.again else {}),
            who=opened.settings.user,
            why=wanted.why,
        )


def _is_begun(stored: Backfill) -> bool:
    return stored.kind == REPLAY_KIND and stored.state in UNFINISHED


def _options(given: tuple[str, ...]) -> dict[str, str]:
    try:
        return dict(map(parse_option, given))
    except ValueError as error:
        raise ConfigError("This is no option of a sink", faults=(Fault("sink", str(error)),)) from error
