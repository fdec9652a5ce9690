"""Options of the data source, each a text as Spark hands it over: checked, with all faults at once.

`checked` runs in every process that needs them, for references (`${env:NAME}`, `${file:PATH#KEY}`) mean something there
only, and what they stand for never travels.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import AfterValidator, AliasChoices, BeforeValidator, ByteSize, Field, ValidationError, model_validator

from connect_core.config.faults import model_faults
from connect_core.config.references import reveal
from connect_core.errors import ConfigError
from connect_core.rocketmq import Queue
from connect_core.spark.ranges import ReadRange
from connect_core.systems.rocketmq.clusters import ClusterOptions, as_list
from connect_core.systems.rocketmq.connecting import is_queue, queue_of
from connect_core.systems.rocketmq.options import TargetTopic, Topic

COLUMNS = ("topic", "queue", "offset", "key", "tags", "value", "headers", "timestamp", "stored_at")
"""What a message can be read into, in this order unless told."""
_AS_BOUNDS = 'write {"topic/broker/queueId": [begin, end], …}; null is the oldest, or the end when Spark plans'


def parse_bounds(text: str) -> tuple[ReadRange, ...]:
    """Bounds by queue, as JSON. Raises ValueError."""
    try:
        given = json.loads(text, object_pairs_hook=_without_repeats)
    except json.JSONDecodeError:
        raise ValueError(f"is not JSON: {_AS_BOUNDS}") from None
    if not isinstance(given, dict) or not given:
        raise ValueError(f"names no queue: {_AS_BOUNDS}")
    return tuple(ReadRange(_queue(name), *_pair(name, pair)) for name, pair in given.items())


def _without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("names a queue twice")
    return found


def _queue(name: str) -> Queue:
    if not is_queue(name):
        raise ValueError(f"{name!r} is no queue: {_AS_BOUNDS}")
    return queue_of(name)


def _pair(name: str, pair: object) -> tuple[int | None, int | None]:
    if not isinstance(pair, list) or len(pair) != 2 or not all(_is_offset(one) for one in pair):
        raise ValueError(f"{name!r} needs two offsets: {_AS_BOUNDS}")
    begin, end = pair
    if begin is not None and end is not None and end < begin:
        raise ValueError(f"{name!r} ends before it begins")
    return begin, end


def _is_offset(value: object) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 0)


def _bounds(value: object) -> object:
    return parse_bounds(value) if isinstance(value, str) else value


def _moment(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise ValueError("is not a time: write it with its zone, as 2026-11-01T00:00:00Z") from None
    if moment.tzinfo is None:
        raise ValueError("is a time without its zone: add Z for UTC")
    return moment


def _known_columns(names: tuple[str, ...]) -> tuple[str, ...]:
    if unknown := [name for name in names if name not in COLUMNS]:
        raise ValueError(f"there is no column {', '.join(unknown)}; there are {', '.join(COLUMNS)}")
    if not names or len(set(names)) < len(names):
        raise ValueError("must name at least one column, and each once")
    return names


Moment = Annotated[datetime | None, BeforeValidator(_moment)]


class _Options(ClusterOptions):
    busy_s: float = Field(
        default=30.0, gt=0, description="Seconds for which a busy broker is asked again before a task fails"
    )


class ReadOptions(_Options):
    """Reads ranges of queues."""

    topics: Annotated[tuple[Topic, ...], BeforeValidator(as_list)] = Field(
        default=(), description="Topics to read, every queue of them", examples=["orders, payments"]
    )
    bounds: Annotated[tuple[ReadRange, ...], BeforeValidator(_bounds)] = Field(
        default=(),
        description="Instead of `topics`: the queues to read, each from an offset (included) to another (excluded), as "
        "JSON. `null` is the oldest there is, or the end when Spark plans",
        examples=['{"orders/broker-a/0": [100, 200], "orders/broker-a/1": [0, null]}'],
    )
    since: Moment = Field(
        default=None,
        alias="from",
        description="With `topics`: only messages stored at that time or later",
        examples=["2026-11-01T00:00:00Z"],
    )
    until: Moment = Field(
        default=None,
        alias="to",
        description="With `topics`: only messages stored before that time",
        examples=["2026-11-02T00:00:00+01:00"],
    )
    columns: Annotated[tuple[str, ...], BeforeValidator(as_list), AfterValidator(_known_columns)] = Field(
        default=COLUMNS,
        description="Columns to make, in this order; other columns are not decoded",
        examples=["offset, value"],
    )
    headers: Literal["map", "binary"] = Field(
        default="map",
        description="Type of the column `headers`: `binary` is the user's properties as RocketMQ stores them, each "
        "name 0x01 value 0x02, which costs much less to hand through",
    )
    on_data_loss: Literal["fail", "skip"] = Field(
        default="fail",
        validation_alias=AliasChoices("on_data_loss", "on_gap"),  # the second is its former name
        description="Messages that were asked for cannot be read: fail, or continue after them with a row that says so "
        "in one more column, `gap`",
    )
    range_records: int = Field(
        default=1_000_000, ge=1, description="Offsets that one Spark task reads at most; a longer range is cut evenly"
    )

    @model_validator(mode="after")
    def _says_what(self) -> Self:
        if bool(self.topics) == bool(self.bounds):
            raise ValueError("give topics, or bounds" + (", not both" if self.topics else ""))
        if self.bounds and (self.since or self.until):
            raise ValueError("from and to go with topics; bounds say from where to where already")
        if self.since and self.until and self.until <= self.since:
            raise ValueError("to is not later than from")
        return self


class WriteOptions(_Options):
    """Appends messages to a topic."""

    topic: TargetTopic | None = Field(
        default=None,
        description="Topic to write; left out when a column says it for each row",
        examples=["orders"],
    )
    create: bool = Field(default=False, description="Create `topic` when it is missing")
    queues: int = Field(default=4, ge=1, le=1024, description="Queues on each broker of a topic that is created")
    routing: Literal["partition", "key"] = Field(
        default="partition",
        description="Which queue a row goes to: one for each partition of the DataFrame, so that its order holds; or "
        "one for each key, and for rows without a key as before",
    )
    value_column: str = Field(default="value", description="Column of the bodies, binary or string; needed")
    key_column: str = Field(default="key", description="Column of the keys, string")
    tags_column: str = Field(default="tags", description="Column of the tags, string")
    headers_column: str = Field(
        default="headers", description="Column of the user properties, map<string,string> or binary"
    )
    topic_column: str = Field(default="topic", description="Column of the topics, string")
    max_message_bytes: ByteSize = Field(
        default=ByteSize(4 * 1024 * 1024),
        ge=1024,
        le=8 * 1024 * 1024,
        description="A larger body fails the job before it is sent; at most the brokers' maxMessageSize",
    )


Model = TypeVar("Model", bound=_Options)


def checked(model: type[Model], options: Mapping[str, str]) -> Model:
    """Raises ConfigError with every fault, and no secret."""
    given: dict[str, Any] = dict(options)
    try:
        return model.model_validate(reveal(given))
    except ValidationError as error:
        raise ConfigError(
            "These options of the data source rocketmq are wrong",
            next_step="See all of them in docs/spark-data-source.md",
            faults=tuple(model_faults(error, model)),
        ) from None
