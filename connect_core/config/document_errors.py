"""The errors of a connector document: what happens to records that fail, and to records that are gone."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, AliasChoices, BeforeValidator, Field, model_validator

from connect_core.config.document_parts import DocumentPart, Endpoint
from connect_core.config.units import Seconds, Share
from connect_core.pipeline.key_ids import KEY_ID_FORM, is_key_id

ALL = -1
"""The tolerance that never ends a run."""


def parse_tolerance(value: object) -> int:
    """`none` is 0, `all` is ALL; else the number of rejects that a range may have."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    words = {"none": 0, "all": ALL}
    if not isinstance(value, str) or value not in words:
        raise ValueError(f"{value!r} is not none, all or the number of records that may fail in a range")
    return words[value]


class RejectBudget(DocumentPart):
    """How many of the records that `tolerance` allows to fail may do so within a time, whatever runs."""

    records: int | None = Field(
        default=None, ge=1, strict=True, description="So many records of each partition within the window."
    )
    share: Share | None = Field(
        default=None,
        description="This share of the records read of each partition within the window, of 1,000 at least.",
    )
    window: Seconds = Field(default=3600.0, gt=0, description="How far back is counted, by settled receipts.")

    @model_validator(mode="after")
    def _limits(self) -> Self:
        if self.records is None and self.share is None:
            raise ValueError("limits nothing: give records, share or both")
        return self


def _checked_key_id(text: str) -> str:
    if not is_key_id(text):
        raise ValueError(KEY_ID_FORM)
    return text


class Encryption(DocumentPart):
    """The key of dead letters, which the ledger then keeps encrypted: payload, key, tags, headers and time."""

    key: str = Field(
        min_length=1,
        description="A reference to a secret of 16 characters or more, read where workers run: `${file:PATH#NAME}` or "
        "`${env:NAME}`.",
    )
    key_id: Annotated[str, AfterValidator(_checked_key_id)] | None = Field(
        default=None,
        description="Needed: which key is meant, so that a replaced one is noticed. `waybill check` says it.",
    )


class Errors(DocumentPart):
    """What happens to records that fail, and to records that are gone."""

    tolerance: Annotated[int, BeforeValidator(parse_tolerance)] = Field(
        default=0,
        description="none, all, or how many records of each partition a run may reject, a window included; one more "
        "puts the partition aside until the next run.",
    )
    budget: RejectBudget | None = Field(
        default=None,
        description="Of what tolerance allows, how many records may fail within a time, over all runs; one more puts "
        "the partition aside until the window has moved on.",
    )
    dead_letter: Literal["ledger"] = Field(default="ledger", description="Where rejected records are kept.")
    encrypt: Encryption | None = Field(
        default=None, description="The key that the ledger keeps rejected records with; by default in plain."
    )
    sink: Endpoint | None = Field(
        default=None,
        description="A second target that rejected records go to, as they were read: {SYSTEM: {options}}, as the sink "
        "has it. The ledger keeps them all the same.",
    )
    headers: Literal["none", "connect"] = Field(
        default="none",
        description="connect: records in that target say where they were read and why they were rejected, in the "
        "headers that Kafka Connect and RocketMQ Connect have for it: `__connect.errors.topic` and so on.",
    )
    on_data_loss: Literal["fail", "skip"] = Field(
        default="fail",
        validation_alias=AliasChoices("on_data_loss", "on_gap"),  # the second is its former name
        description="When records of the source are gone: fail, or record the gap and continue after it.",
    )

    @model_validator(mode="after")
    def _budget_of_something(self) -> Self:
        if self.budget and not self.tolerance:
            raise ValueError("budget limits what tolerance allows, and tolerance is none: make it all, or a number")
        return self

    @model_validator(mode="after")
    def _headers_of_something(self) -> Self:
        if self.headers != "none" and self.sink is None:
            raise ValueError("headers are those of records in errors.sink: name one")
        return self
