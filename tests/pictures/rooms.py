"""docs/pictures/rooms.svg: the rooms of `connect_core`, with the arrows that tests/unit/test_rooms.py allows.

python -m tests.pictures.rooms          writes the drawing (`make docs` does so)
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from pathlib import Path

from tests.unit.test_rooms import ALLOWED, OF_REPLICATION

PICTURE = Path(__file__).resolve().parents[2] / "docs" / "pictures" / "rooms.svg"

_WIDTH, _HEIGHT = 980, 810
_EDGE, _ROOM, _PART, _OPEN_TO_ALL = "#dbeafe", "#f3f4f6", "#ffffff", "#dcfce7"
_LINE, _TEXT = "#4b5563", "#111827"


@dataclass(frozen=True)
class Box:
    """A room where it is drawn; `x` and `y` are of its middle, in pixels."""

    x: int
    y: int
    says: str
    colour: str = _ROOM
    width: int = 160
    height: int = 46

    @property
    def top(self) -> int:
        return self.y - self.height // 2

    @property
    def bottom(self) -> int:
        return self.y + self.height // 2


BOXES = {
    "cli": Box(110, 35, "the waybill command", _EDGE),
    "remote": Box(310, 35, "a client of waybill serve", _EDGE, width=190),
    "airflow": Box(520, 35, "DAGs, operators", _EDGE),
    "jobs": Box(720, 35, "what spark-submit runs", _EDGE),
    "api": Box(110, 130, "waybill serve", _EDGE),
    "service": Box(330, 130, "one function a use case"),
    "orchestration": Box(210, 225, "a client of Airflow"),
    "engine": Box(450, 225, "where lanes run"),
    "replication": Box(330, 370, "one run", width=600, height=160),
    "replication/backfill": Box(130, 365, "backfills, replays", _PART),
    "replication/driver": Box(330, 365, "leases, plan, settle", _PART),
    "replication/worker": Box(530, 365, "the ranges of a lane", _PART),
    "replication/locks": Box(460, 425, "", _PART, width=70, height=26),
    "replication/host": Box(590, 425, "", _PART, width=70, height=26),
    "spark": Box(735, 425, "a data source", _EDGE),
    "demo": Box(900, 425, "make demo", _EDGE, width=130),
    "observe": Box(130, 525, "steps, metrics"),
    "config": Box(450, 525, "documents, settings"),
    "pipeline": Box(240, 620, "filters, rules, steps"),
    "systems": Box(450, 620, "file, mqtt, rocketmq"),
    "stack": Box(660, 620, "servers of this machine"),
    "registry": Box(50, 710, "schemas", width=90),
    "rows": Box(240, 710, "fields and types"),
    "rocketmq": Box(450, 710, "a RocketMQ client"),
    "ledger": Box(660, 710, "the metadata database"),
    "planning": Box(870, 710, "partitions to lanes"),
    "sdk": Box(_WIDTH // 2, 778, "and errors, clock, work, version: open to every room", _OPEN_TO_ALL, width=940),
}


def arrows(rooms: Mapping[str, Set[str]]) -> dict[str, set[str]]:
    """By room those that it may import and that no longer way leads to. `rooms` must have no circle."""
    return {
        room: {one for one in may if not any(one in _reached(rooms, other) for other in may - {one})}
        for room, may in rooms.items()
    }


def _reached(rooms: Mapping[str, Set[str]], room: str) -> set[str]:
    return set(rooms[room]).union(*(_reached(rooms, one) for one in rooms[room]))


def drawing() -> str:
    """The SVG. Raises KeyError when a room has no place in it."""
    parts = {f"replication/{part}": {f"replication/{one}" for one in may} for part, may in OF_REPLICATION.items()}
    drawn = arrows(ALLOWED | parts)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif">',
        "<title>The rooms of connect_core; an arrow leads from a room to one that it imports</title>",
        '<marker id="tip" viewBox="0 0 10 10" refX="10" refY="5" markerWidth="8" markerHeight="8" orient="auto">',
        f'<path d="M0 0L10 5L0 10z" fill="{_LINE}"/></marker>',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>',
        *(_box(name, box) for name, box in BOXES.items()),
        *(_arrow(BOXES[room], BOXES[one]) for room, ones in drawn.items() for one in sorted(ones)),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _box(name: str, box: Box) -> str:
    text = f'<text x="{box.x}" fill="{_TEXT}" text-anchor="middle"'
    return (
        f'<rect x="{box.x - box.width // 2}" y="{box.top}" width="{box.width}" height="{box.height}" rx="6"'
        f' fill="{box.colour}" stroke="{_LINE}"/>'
        f'{text} y="{box.top + 19}" font-size="15" font-weight="bold">{name.split("/")[-1]}</text>'
        f'{text} y="{box.top + 37}" font-size="12">{box.says}</text>'
    )


def _arrow(here: Box, there: Box) -> str:
    """From the lower edge to the upper one, straight down onto a wide box; from side to side within a row."""
    if here.y == there.y:
        x1, y1, x2, y2 = here.x + here.width // 2, here.y, there.x - there.width // 2, there.y
    else:
        is_above = abs(here.x - there.x) < there.width // 2
        x1, y1, x2, y2 = here.x, here.bottom, here.x if is_above else there.x, there.top
    return f'<path d="M{x1} {y1}L{x2} {y2}" stroke="{_LINE}" marker-end="url(#tip)"/>'


if __name__ == "__main__":
    PICTURE.write_text(drawing())
