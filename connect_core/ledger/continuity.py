"""Does a planned range go on where its partition stands? Pure; asked by `plan` (delivery rules 9, 10 and 13)."""

from __future__ import annotations

from connect_core.sdk.values import Position, Range


def continues(committed: Position | None, planned: Range) -> str:
    """What is wrong with the begin of `planned`, or "" when nothing is.

    From the committed position, the gaps that the range tells of must follow one on the other without a hole, and the
    range must begin where the last one ends (anywhere behind it where nobody knows its end). When the partition has
    begun anew (a higher incarnation) offsets start over: only the source knows where. A gap of an incarnation that is
    over (lines that came into a rotated file after it was read) moves nothing. A partition that was never settled may
    begin anywhere.
    """
    if planned.end < planned.begin:
        return f"it ends at {planned.end}, before its begin"
    if committed is None:
        return ""
    incarnation, place, known = committed.incarnation, committed.offset, True
    for gap in (one for one in planned.gaps if one.incarnation >= committed.incarnation):
        fault = _step(incarnation, place, known, gap.incarnation, gap.begin)
        if fault:
            return f"the gap at {gap.begin}: {fault}"
        incarnation, place, known = gap.incarnation, gap.begin if gap.end is None else gap.end, gap.end is not None
    return _step(incarnation, place, known, planned.incarnation, planned.begin)


def _step(incarnation: int, place: int, known: bool, next_incarnation: int, begin: int) -> str:
    if next_incarnation > incarnation:
        return ""
    if next_incarnation < incarnation:
        return f"incarnation {next_incarnation} is over, the partition is at {incarnation}"
    if begin == place or (not known and begin >= place):
        return ""
    return f"it does not continue from the committed offset or the gap before it, {place}"
