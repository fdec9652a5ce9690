"""A file may have several names (links), and each that a document had has a floor: which of them speaks for it.

The one that is furthest on in the file. Behind another one settled lines stand, which would be taken for unsettled.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import nullcontext
from typing import NamedTuple

from connect_core.sdk.values import Floor
from connect_core.systems.file.identity import OpenFile, open_if_there
from connect_core.systems.file.target import TargetPlace


class Settled(NamedTuple):
    """`name` is what the ledger calls the floor."""

    name: str
    place: TargetPlace


def settled(name: str, path: str, floors: Sequence[Floor], *, continues: bool = False) -> Settled | None:
    """What was settled in the file at `path`, which the document or a range calls `name`; None when nothing was ever
    planned there. Where `name` says that the file was replaced, that counts, unless such a file may be gone on with
    (`continues`)."""
    known = [Settled(floor.target, TargetPlace.of(floor)) for floor in floors if _is_of_a_file(floor)]
    own = next((one for one in known if one.name == name), None)
    file = open_if_there(path)
    with file or nullcontext():
        there = [one for one in known if _stands_in(one, own, path, file)]
        if own and own not in there:
            there = [one for one in there if _speaks_for(one, own, file, continues=continues)]
    return max(there, key=lambda one: (one.place.offset, one.name == name), default=own)


def _is_of_a_file(floor: Floor) -> bool:
    """A connector may have had another system as its target."""
    return not floor.partition_id and "base" in floor.evidence


def _stands_in(one: Settled, own: Settled | None, path: str, file: OpenFile | None) -> bool:
    """Whether it was settled in the file that is there, and is there. Before a first receipt only the name tells."""
    if one.place.offset:
        return not one.place.lost_in(file)
    return one is own or os.path.realpath(one.name) == path


def _speaks_for(one: Settled, own: Settled, file: OpenFile | None, *, continues: bool) -> bool:
    """Whether what stands in the file is the answer though `own` does not: that is of an older time, or of another
    file. One that is before it would hide what was cut off."""
    if own.place.is_of(file):
        return one.place.offset > own.place.offset
    return continues
