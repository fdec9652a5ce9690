"""How a session stands at a place: what is settled with a position of it, as evidence. Values only."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from connect_core.sdk.values import Json
from connect_core.systems.mqtt.unconfirmed import UnconfirmedRecord

_COLUMNS = 3  # number of arrival, trace, flags
_SENT, _CONFIRMED = 1, 2
_COUNTS_UP = "counts_on"
"""Former versions say `counts_up`, and have learned it within one connection, which may have begun with 1."""


@dataclass(frozen=True)
class SessionStanding:
    """`subscribed` are the filters of the session at the broker: none says that there is no session to go on with.
    `entries` are in the target, and not known to be acknowledged or the last that were. `counts_up`: it was learned
    that the broker gives out packet ids one after the other. `witnessed`: there is a second session beside this one
    (`looking`). `dropped` is how many messages the broker said last that it has dropped, for anybody; None when it has
    not said. `granted` has, of the filters, those that the broker is known to have granted, with the QoS. `asks` is
    what the quantum asks for that begins here. `moved` are the filters of which it was told that this session leaves
    them to another one. `losses` is how often the session was lost: by this its witness has another name each time."""

    subscribed: tuple[str, ...] = ()
    entries: tuple[UnconfirmedRecord, ...] = ()
    counts_up: bool = False
    witnessed: bool = False
    dropped: int | None = None
    granted: tuple[tuple[str, int], ...] = ()
    asks: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()
    losses: int = 0

    @classmethod
    def of(cls, evidence: Json) -> SessionStanding:
        """Empty evidence is that of a session that never was, or whose place a former version has set."""
        stored = zlib.decompress(base64.b64decode(evidence.get("unconfirmed", _NOTHING)))
        rows = np.frombuffer(stored, dtype=np.int64).reshape(-1, _COLUMNS).tolist()
        entries = tuple(
            UnconfirmedRecord(one, trace, bool(flags & _SENT), bool(flags & _CONFIRMED)) for one, trace, flags in rows
        )
        subscribed, counts_up = tuple(evidence.get("subscribed", ())), bool(evidence.get(_COUNTS_UP))
        return cls(
            subscribed,
            entries,
            counts_up,
            bool(evidence.get("witnessed")),
            evidence.get("dropped"),
            tuple(evidence.get("granted", {}).items()),
            tuple(evidence.get("asks", ())),
            tuple(evidence.get("moved", ())),
            evidence.get("losses", 0),
        )

    def evidence(self) -> Json:
        flagged = [(one.arrival, one.trace, one.sent * _SENT + one.confirmed * _CONFIRMED) for one in self.entries]
        rows = np.array(flagged, dtype=np.int64)
        packed = base64.b64encode(zlib.compress(rows.tobytes())).decode() if len(rows) else _NOTHING
        told = {"unconfirmed": packed, _COUNTS_UP: self.counts_up, "witnessed": self.witnessed}
        told |= {"dropped": self.dropped, **self.of_filters()} | ({"losses": self.losses} if self.losses else {})
        return told | {name: list(given) for name, given in (("asks", self.asks), ("moved", self.moved)) if given}

    def of_filters(self) -> Json:
        """The part of the evidence that says how the session is subscribed."""
        return {"subscribed": list(self.subscribed), "granted": dict(self.granted)}

    def numbered_below(self, begin: int) -> SessionStanding:
        """For who gives its next packet the number `begin`. A person may have set that back: the broker sends again
        what it has to, whatever its number was, and what comes now came later than any of it."""
        below = (one._replace(arrival=min(one.arrival, begin - 1)) for one in self.entries)
        return replace(self, entries=tuple(below))

    def not_granted(self, filters: Sequence[str], qos: int) -> list[str]:
        """Those of these filters of which it is not known that the broker has granted them with this QoS."""
        return [one for one in filters if (one, qos) not in self.granted]

    def before_asking(self, filters: Sequence[str], qos: int) -> SessionStanding:
        """What stays true however far somebody gets who asks for these: a session that is there may be subscribed to
        both, and of what is granted only this is not taken back or granted otherwise."""
        subscribed = tuple(dict.fromkeys((*self.subscribed, *filters))) if self.subscribed else ()
        granted = tuple((one, level) for one, level in self.granted if one in filters and level == qos)
        return replace(self, subscribed=subscribed, granted=granted)

    def with_what_it_asks(self) -> SessionStanding:
        """Where a worker has asked and nobody knows what came of it: the session may be subscribed to both."""
        return replace(self, subscribed=tuple(dict.fromkeys((*self.subscribed, *self.asks))), asks=())

    def without_session(self) -> SessionStanding:
        """The broker has lost it, or its witness alone: then what was under way in it comes again, is never dropped
        since this may also be a session made anew, and counts. It may be another broker, that counts in another way."""
        entries = tuple(one._replace(sent=True, confirmed=True) for one in self.entries)
        return replace(
            self,
            subscribed=(),
            entries=entries,
            witnessed=False,
            granted=(),
            counts_up=False,
            losses=self.losses + 1,
        )


_NOTHING = base64.b64encode(zlib.compress(b"")).decode()
