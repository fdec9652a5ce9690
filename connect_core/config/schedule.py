"""When a connector runs: one of every, cron, continuous, on_change and manual, with or without a window.

Part of the document's model. Judges the words only; who starts the runs is the business of orchestration.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from connect_core.config.units import Seconds, show_seconds

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: tuple[tuple[str, int, int, dict[str, int]], ...] = (
    ("minute", 0, 59, {}),
    ("hour", 0, 23, {}),
    ("day of the month", 1, 31, {}),
    ("month", 1, 12, {name: i for i, name in enumerate(_MONTHS, 1)}),
    ("day of the week", 0, 7, {name: i for i, name in enumerate(_DAYS)}),
)


def check_cron(text: str) -> str:
    """The expression itself when it has five sound fields. Raises ValueError naming the field that is wrong."""
    parts = text.split()
    if len(parts) != len(_FIELDS):
        raise ValueError(f"{text!r} has {len(parts)} fields, a cron expression has {len(_FIELDS)}")
    for part, (name, low, high, names) in zip(parts, _FIELDS, strict=True):
        for item in part.lower().split(","):
            if not _sound(item, low, high, names):
                raise ValueError(f"{item!r} is not a {name} ({low}-{high}) in the cron expression {text!r}")
    return text


def _sound(item: str, low: int, high: int, names: dict[str, int]) -> bool:
    span, slash, step = item.partition("/")
    if slash and not (step.isdecimal() and int(step) > 0):
        return False
    if span == "*":
        return True
    ends = [names.get(end, int(end) if end.isdecimal() else -1) for end in span.split("-")]
    return len(ends) <= 2 and all(low <= end <= high for end in ends) and ends == sorted(ends)


class Schedule(BaseModel):
    """Exactly one of the five; a `window` makes each run stay and follow its source for so long."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    every: Annotated[Seconds, Field(ge=1, description="Start a run at this interval, at least 1s.")] | None = None
    cron: Annotated[str, AfterValidator(check_cron), Field(description="Start runs by a cron expression.")] | None = (
        None
    )
    continuous: Annotated[Literal[True], Field(description="Start the next run when one ends.")] | None = None
    on_change: Annotated[Literal[True], Field(description="Start a run when the source has new records.")] | None = None
    manual: Annotated[Literal[True], Field(description="Start runs by hand only.")] | None = None
    window: Annotated[Seconds, Field(gt=0, description="How long a run follows new records of its source.")] | None = (
        None
    )

    @model_validator(mode="after")
    def _one_way(self) -> Schedule:
        given = [way for way in WAYS if getattr(self, way) is not None]
        if len(given) != 1:
            said = f"{' and '.join(given)} are given" if given else "none is given"
            raise ValueError(f"needs exactly one of {', '.join(WAYS)}: {said}")
        if self.window and self.every and self.window >= self.every:
            raise ValueError(
                f"window ({show_seconds(self.window)}) must be shorter than every ({show_seconds(self.every)})"
            )
        return self

    def words(self) -> str:
        """For a listing: `every 30s, window 25s`."""
        way = next(way for way in WAYS if getattr(self, way) is not None)
        value = {"every": show_seconds(self.every or 0), "cron": self.cron}.get(way)
        head = f"{way} {value}" if value else way.replace("_", " ")
        return f"{head}, window {show_seconds(self.window)}" if self.window else head


WAYS = ("every", "cron", "continuous", "on_change", "manual")
