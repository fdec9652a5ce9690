"""Reads again what receipts say of a file: the bytes of each range; where lines of several ranges stand between each
other, the lines of the whole stretch."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence

from connect_core.sdk.digest import LinesDigest
from connect_core.sdk.digest_texts import LINES, added_up
from connect_core.sdk.rereading import Claim, Reread, Verdict
from connect_core.systems.file.failures import telling

_AT_ONCE = 1 << 20
_CHANGED = "The file holds other bytes there: it was changed, or is another one"


def reread(claims: Sequence[Claim]) -> Iterator[Reread]:
    """See `sdk.rereading.Rereadable`."""
    for one in claims:
        if not one.outputs:
            yield Reread(one.range_id, Verdict.SAME)
        elif not one.digest.startswith(LINES):
            yield _of_bytes(one)
    mingled = [one for one in claims if one.outputs and one.digest.startswith(LINES)]
    for path in sorted({one.target["path"] for one in mingled}):
        for stretch in _stretches(path, [one for one in mingled if one.target["path"] == path]):
            yield from _of_lines(path, stretch)


def _of_bytes(one: Claim) -> Reread:
    path, begin, end = one.where["path"], one.where["begin"], one.where["end"]
    place = f"{path}, bytes {begin:,} to {end:,}"
    if short := _too_short(path, end):
        return Reread(one.range_id, Verdict.DIFFERS, short, place)
    digest = hashlib.sha256()
    for data in _read(path, begin, end):
        digest.update(data)
    if f"sha256:{digest.hexdigest()}" == one.digest:
        return Reread(one.range_id, Verdict.SAME)
    return Reread(one.range_id, Verdict.DIFFERS, _CHANGED, place)


def _stretches(path: str, claims: Sequence[Claim]) -> Iterator[list[Claim]]:
    """Ranges whose bytes stand between each other go together."""
    together: list[Claim] = []
    reached = -1
    for one in sorted(claims, key=lambda one: _bounds(path, one)):
        begin, end = _bounds(path, one)
        if together and begin >= reached:
            yield together
            together = []
        together.append(one)
        reached = max(reached, end)
    if together:
        yield together


def _bounds(path: str, one: Claim) -> tuple[int, int]:
    """From the first byte of its first stretch to behind the last one; what stands between is of others of its run."""
    spans = one.where[path]
    return min(begin for begin, _ in spans), max(end for _, end in spans)


def _of_lines(path: str, together: Sequence[Claim]) -> Iterator[Reread]:
    begin = min(_bounds(path, one)[0] for one in together)
    end = max(_bounds(path, one)[1] for one in together)
    place = f"{path}, bytes {begin:,} to {end:,}"
    what = _too_short(path, end)
    if not what:
        wanted = together[0].digest
        for one in together[1:]:
            wanted = added_up(wanted, one.digest) or wanted
        what = "" if _digest_of_lines(path, begin, end) == wanted else _CHANGED
    verdict = Verdict.DIFFERS if what else Verdict.SAME
    for one in together:
        yield Reread(one.range_id, verdict, what, place if what else "")


def _digest_of_lines(path: str, begin: int, end: int) -> str:
    digest, rest = LinesDigest(), b""
    for data in _read(path, begin, end):
        *lines, rest = (rest + data).split(b"\n")
        digest.add_lines(lines)
    if rest:  # the last line of ours ends with a line feed
        digest.add_lines([rest])
    return digest.text()


def _too_short(path: str, end: int) -> str:
    with telling("cannot be read", path):
        size = os.stat(path).st_size if os.path.exists(path) else None
    if size is None:
        return "The file is not there"
    if not os.path.isfile(path):
        return "It is no file"
    return f"The file ends at byte {size}: it was cut, or is another one" if size < end else ""


def _read(path: str, begin: int, end: int) -> Iterator[bytes]:
    with telling("cannot be read", path), open(path, "rb") as file:
        file.seek(begin)
        while begin < end and (data := file.read(min(_AT_ONCE, end - begin))):
            begin += len(data)
            yield data
