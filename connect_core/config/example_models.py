"""Examples in a document: a record, and what filter, parse and rules are to make of it. `examples` compares them.

Light: documents are read with it. Texts are what they are: no reference in them is resolved.
"""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from connect_core.rows.types import is_text

_SEPARATORS = "\x01\x02"
"""Between headers, where records are in columns (`sdk.records`)."""


def check_text(text: str) -> str:
    """The text itself when UTF-8 can write it: JSON can name half a character."""
    if not is_text(text):
        raise ValueError("holds half of a surrogate pair, which is no text")
    return text


def check_header(text: str) -> str:
    if any(one in text for one in _SEPARATORS):
        raise ValueError("holds the character U+0001 or U+0002, which no header may have")
    return check_text(text)


def check_payload(payload: Any) -> Any:
    """The payload itself when it is text, or what JSON has."""
    if not isinstance(payload, str | dict | list):
        raise ValueError("must be text, or a mapping or list that is written as JSON; put a number in quotes")
    payload_bytes(payload)
    return payload


def payload_bytes(payload: Any) -> bytes:
    """Text as it is, anything else as compact JSON. Raises ValueError for what neither can be."""
    if isinstance(payload, str):
        return check_text(payload).encode()
    try:
        text = json.dumps(payload, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError:
        raise ValueError("holds a number that JSON cannot have") from None
    return check_text(text).encode()


def one_or_several(value: Any) -> Any:
    """A list, of which one output may stand by itself."""
    if value == []:
        raise ValueError("is empty: write filtered: true for a record that is left out")
    return [value] if isinstance(value, dict) else value


def check_reason(value: Any) -> str | None:
    """`true` is any reason, which every message holds: the empty text."""
    if isinstance(value, bool):
        return "" if value else None
    if not isinstance(value, str) or not value:
        raise ValueError("is true, a stage such as parse, or a part of the reason")
    return value


Text = Annotated[str, AfterValidator(check_text)]
HeaderText = Annotated[str, AfterValidator(check_header)]
Payload = Annotated[Any, AfterValidator(check_payload)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ExampleRecord(_Part):
    """A record as the source would make it."""

    payload: Payload = Field(
        default="", description="Text, or a mapping or list, which is written as JSON without spaces."
    )
    topic: Text | None = Field(default=None, description="The topic that it is read from.")
    tags: Text | None = Field(default=None, description="Its tags.")
    key: Text | None = Field(default=None, description="Its key.")
    headers: dict[HeaderText, HeaderText] = Field(default_factory=dict, description="Its headers (user properties).")
    path: str | None = Field(
        default=None,
        min_length=1,
        description="Of a line: the file that it is from, one that the source reads. By default the source's `path`, "
        "unless that is a pattern.",
    )


class ExampleOutput(_Part):
    """What of an output is compared: what is given. `null` is what it does not have."""

    payload: Payload = Field(
        default=None, description="Text, or a mapping or list, which is compared with the payload as JSON."
    )
    to: Text | None = Field(
        default=None, description="The topic that a rule names; null: it goes where the options of the sink say."
    )
    tags: Text | None = Field(default=None, description="Its tags.")
    key: Text | None = Field(default=None, description="Its key.")
    headers: dict[HeaderText, HeaderText | None] = Field(
        default_factory=dict, description="Some of its headers; null: it has none of this name."
    )


class Example(_Part):
    """A record, and one thing that is expected of it."""

    name: str = Field(default="", max_length=200, description="For people.")
    record: ExampleRecord = Field(description="The record.")
    becomes: Annotated[list[ExampleOutput], BeforeValidator(one_or_several)] = Field(
        default_factory=list, description="Its outputs, all of them and in order; or the only one."
    )
    filtered: bool = Field(default=False, strict=True, description="Whether it is left out.")
    rejected: Annotated[str | None, BeforeValidator(check_reason)] = Field(
        default=None, description="Whether it fails: true, the stage (parse), or a part of the reason."
    )

    @model_validator(mode="after")
    def _expects_one_thing(self) -> Example:
        given = {"becomes": self.becomes, "filtered": self.filtered, "rejected": self.rejected is not None}
        found = [name for name, is_given in given.items() if is_given]
        if len(found) != 1:
            raise ValueError(f"needs one of becomes, filtered and rejected, found {' and '.join(found) or 'none'}")
        return self
