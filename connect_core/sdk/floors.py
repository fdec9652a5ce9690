"""Where the floors of a range go when it is settled. Pure."""

from __future__ import annotations

from connect_core.sdk.values import Delivered, Floor, FloorMove, OpenRange


def next_floors(
    item: OpenRange, delivered: Delivered, end: int, deduplicated: int = 0, *, full: bool = False
) -> tuple[FloorMove, ...]:
    """Delivery rule 6: for each target that was looked through or written the lowest position of a record of ours at or
    behind `end` that stands there already; where there is none, behind everything that was scanned and written. Targets
    that keep progress count records: of one that is ahead of `end` the `deduplicated` ones before it are settled, those
    that it had refused and took now, and what it has from elsewhere, which this receipt counts. Of a target that was
    neither nothing is known that the ledger does not know. A target that may hold any of the range stays ahead until
    that is settled to its planned end, or is `full`: as much as its limits let any attempt write."""
    found = item.known
    known = {floor.target: floor for floor in item.floors}
    ahead = found.lowest_from(end)
    if found.prefix.through > end:
        settled = deduplicated + delivered.records
        ahead = {name: count - found.prefix.records + settled for name, count in found.scanned.items()}
    left = found.unknown and end < item.range.end and not full
    moves = []
    for target in sorted((known.keys() & found.scanned.keys()) | delivered.behind.keys()):
        floor = known.get(target, Floor(item.range.partition.id, target, 0))
        behind = max(floor.position, found.scanned.get(target, 0), delivered.behind.get(target, 0))
        position = ahead.get(target, behind)
        written = delivered.stands.get(target) or (delivered.evidence if target in delivered.behind else {})
        after = Floor(floor.partition_id, target, position, left or target in ahead, written or floor.evidence)
        moves.append(FloorMove(delivered.began.get(target, floor.position), after))
    return tuple(moves)
