"""What requests of Waybill's own API have in common: pages, revisions, bodies. Pure but for the lock."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import Depends, Header, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from connect_core.api.changing import changing
from connect_core.service.dead_letters import Words
from connect_core.service.native_connectors import MadeFrom
from connect_core.service.pages import MOST

_TAG = re.compile(r'(?:W/)?"[\x21\x23-\x7e]*"')


def storable(value: Any) -> Any:
    """Raises ValueError for what no file could say: half a character, and numbers that are none."""
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        raise ValueError("has a text or a number that JSON has no form for, or is nested too deeply") from None
    return value


def _text(value: str) -> str:
    if "\0" in value:
        raise ValueError("has the character NUL, which no database keeps")
    return str(storable(value))


Name = Annotated[str, Path(description="Name of the connector", examples=["copy"])]
Limit = Annotated[int, Query(ge=1, le=MOST, description="Entries of a page")]
After = Annotated[str, Query(description="`after` of the page before; empty for the first")]
Preview = Annotated[bool, Query(description="Say what would change, and change nothing")]
Document = Annotated[dict[str, Any], AfterValidator(storable)]
Text = Annotated[str, AfterValidator(_text)]

Offset = Annotated[int, Field(strict=True, ge=0, lt=1 << 63)]
OffsetsByPartition = Annotated[dict[str, Offset | None], Field(max_length=10_000)]


class Given(BaseModel):
    """A body: what it does not know is a fault."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    def said(self, name: str) -> Any:
        """The value of a field that was sent; None for one that was left out."""
        return getattr(self, name) if name in self.model_fields_set else None


Run = Annotated[str, Query(description="Only those of this run")]
Partition = Annotated[str, Query(description="Only those of this partition")]
LetterState = Annotated[str, Query(description="open, replayed, discarded or all")]
LetterNumber = Annotated[int, Field(ge=1, lt=1 << 63)]
LetterNumbers = Annotated[list[LetterNumber] | None, Query(alias="id", description="Only these", max_length=1_000)]


def _letter_words(
    stage: Text = "",
    since: Text = "",
    until: Text = "",
    partition: Partition = "",
    reason: Text = "",
    run: Run = "",
    state: LetterState = "open",
    number: LetterNumbers = None,
) -> Words:
    return Words(stage, since, until, partition, reason, run, tuple(number or ()), state=state)


ChosenLetters = Annotated[Words, Depends(_letter_words)]
"""Dead letters by what a query says of them."""


class LettersGiven(Given):
    """Dead letters by their numbers, or by what they have in common."""

    ids: list[Annotated[int, Field(strict=True, ge=1, lt=1 << 63)]] = Field(default_factory=list)
    stage: Text = ""
    since: Text = ""
    until: Text = ""
    partition: Text = ""
    reason: Text = ""
    run: Text = ""

    def words(self) -> Words:
        return Words(self.stage, self.since, self.until, self.partition, self.reason, self.run, ids=tuple(self.ids))


class Documents(Given):
    """As `waybill apply` takes them, as JSON."""

    documents: Annotated[list[Annotated[Any, AfterValidator(storable)]], Field(max_length=500)]


class Checking(Documents):
    """With `probe` each end is asked."""

    probe: bool = False


class Applying(Documents):
    """`why` is kept with the revisions. `made_from` has by name the revision that a document was made from, 0 for one
    that is to be new."""

    why: Text = ""
    made_from: dict[str, Annotated[int, Field(strict=True, ge=0, lt=1 << 63)]] = Field(default_factory=dict)


async def _one_at_a_time(request: Request) -> AsyncIterator[None]:
    async with changing(request):
        yield


Alone = Annotated[None, Depends(_one_at_a_time, scope="function")]
"""Of a route that judges or stores documents."""


def _made_from(
    if_match: Annotated[str, Header(description="The ETag of what the change was made from")] = "",
    if_none_match: Annotated[str, Header(description="`*`: create it, and change nothing that is there")] = "",
) -> MadeFrom:
    if if_none_match and if_none_match.strip() != "*":
        raise malformed("If-None-Match", "is * or is left out: the change creates a connector")
    if if_match.strip() == "*":
        return MadeFrom(any=True)
    if if_match and not re.fullmatch(rf"\s*{_TAG.pattern}(?:\s*,\s*{_TAG.pattern})*\s*", if_match):
        raise malformed("If-Match", 'is an ETag as a GET answers it, such as "3"')
    return MadeFrom(new=bool(if_none_match), revisions=tuple(map(_revision, _TAG.findall(if_match))))


Since = Annotated[MadeFrom, Depends(_made_from)]


def tag(revision: int) -> dict[str, str]:
    """The header that names a revision."""
    return {"ETag": f'"{revision}"'}


def malformed(place: str, why: str) -> RequestValidationError:
    return RequestValidationError([{"loc": (place,), "msg": why}])


def _revision(written: str) -> int:
    """One that no connector has where the tag is none of ours."""
    inner = written.strip('"')
    return int(inner) if re.fullmatch(r"[1-9][0-9]{0,17}", inner) else -1
