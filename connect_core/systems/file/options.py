"""Options of the file system's source and sink. Paths may be relative in a document; `apply` makes them absolute."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ByteSize, ConfigDict, Field, JsonValue

_PATH: dict[str, JsonValue] = {"kind": "path"}


def path_of_task(path: str, task: int, tasks: int) -> str:
    """Where a task writes: with several tasks, `.taskN` stands before the extension. Pure."""
    whole = Path(path)
    return str(whole.with_name(f"{whole.stem}.task{task}{whole.suffix}")) if tasks > 1 else str(whole)


class FileSourceOptions(BaseModel):
    """Reads every file that a pattern matches, line by line, and goes on as they grow and are rotated."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: str = Field(
        min_length=1,
        json_schema_extra=_PATH,
        description="File, or pattern with `*`, `?`, `[...]` and `**`, of the files to read. Symbolic links are "
        "followed at each look: where one moves on to another file, that is read after the first; within `**` each "
        "folder is entered once, whatever links lead to it",
        examples=["/var/log/app/*.log"],
    )
    parallel: bool = Field(
        default=False,
        description="Read parts of one large file side by side; the order of lines is given up",
        examples=[True],
    )
    sub_partition_bytes: ByteSize = Field(
        default=ByteSize(256 * 1024 * 1024),
        ge=1,
        description="With `parallel`: about how many bytes make one part, fixed when a file is first seen",
        examples=["256MiB"],
    )
    max_line_bytes: ByteSize = Field(
        default=ByteSize(4 * 1024 * 1024),
        ge=1,
        le=256 * 1024 * 1024,
        description="A longer line is rejected, not read",
        examples=["4MiB"],
    )
    line_end: Literal["any", "lf"] = Field(
        default="any",
        description="What ends a line and is no part of it: `any`, a line feed and a carriage return right before it; "
        "`lf`, the line feed alone, so that a carriage return stays in the record",
        examples=["lf"],
    )
    binary: bool = Field(
        default=False,
        description="Read whatever the bytes are. Else the lines in a file that is compressed with gzip, zstd, bzip2 "
        "or lz4 are read; one that is compressed otherwise (xz, compress, zip) or has a NUL among its first 8 KiB is "
        "refused by name, and the other files are read",
        examples=[True],
    )
    rotation_quiet_s: float = Field(
        default=0.5,
        ge=0,
        le=3600,
        description="Seconds for which a renamed file must have been left alone before its last line counts as "
        "whole and the file that took its place is begun",
        examples=[5],
    )
    unfinished_s: float = Field(
        default=600,
        ge=0,
        description="Seconds without a write after which a compressed file that ends in the middle counts as damaged. "
        "Until then its whole lines are read, and the rest when it comes",
        examples=[3600],
    )
    shared: bool = Field(
        default=False,
        description="The path leads to one file system on every host that reads it, and all of them see its files in "
        "the same way (`check` prints that as a condition). Then workers and drivers on any host may read it; else "
        "those on the host of the driver alone",
        examples=[True],
        json_schema_extra={"policy": True},
    )

    roots: tuple[str, ...] = Field(
        default=(),
        description="Where links may lead",
        examples=[["/data"]],
        json_schema_extra={"injected": True},
    )


class FileSinkOptions(BaseModel):
    """Writes each record's value as one line to the end of one file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: str = Field(
        min_length=1,
        json_schema_extra={**_PATH, "single_writer": True},
        description="File to write; with several tasks `.taskN` goes in before the extension. Symbolic links are "
        "followed at each run: where one leads to another file by then, that counts as replaced",
        examples=["/data/out/orders.txt"],
    )
    format: Literal["lines"] = Field(
        default="lines",
        description="`lines`: the value and a line feed. No key and no header is kept. A record without a value is an "
        "empty line; one whose value holds a line feed is refused",
        examples=["lines"],
    )
    on_replaced: Literal["fail", "continue"] = Field(
        default="fail",
        description="When the file is not the one that was written, or is shorter: stop, or write the file that is "
        "there now from its start (its present content is set aside)",
        examples=["continue"],
        json_schema_extra={"policy": True},
    )
    tasks: int = Field(
        default=1,
        ge=1,
        description="How many tasks the connector has",
        examples=[2],
        json_schema_extra={"injected": True},
    )
