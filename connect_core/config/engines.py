"""Engines by name: what `--engine`, a document's `engine` and the setting of that name may say.

Each kind is an engine by itself. Others are in `conf/engines/NAME.yaml` of the home's folder, so that whoever looks
after an installation decides which programs a document can have started. A file that is named after a kind says
what that one is.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from connect_core.config.faults import model_faults, nearest
from connect_core.config.home import folder_of
from connect_core.config.references import is_secret_name
from connect_core.config.settings import MASTER, Settings
from connect_core.config.written import Written, read_file
from connect_core.errors import ConfigError

Kind = Literal["spark", "inline", "submit"]
KINDS: tuple[Kind, ...] = ("spark", "inline", "submit")

OURS = (
    "spark.task.maxFailures",
    "spark.speculation",
    "spark.dynamicAllocation.enabled",
    "spark.io.encryption.enabled",
    "spark.sql.leafNodeDefaultParallelism",
    "spark.python.daemon.module",
)
"""What lanes stand on: the driver sets it, whatever else is said."""

_ONLY_FOR: dict[str, tuple[Kind, ...]] = {
    "python": ("submit",),
    "spark": ("spark", "submit"),
    "master": ("submit",),
    "conf": ("submit",),
}


def _absolute(path: Path) -> Path:
    if not path.is_absolute():
        raise ValueError(f"{str(path)!r} is not an absolute path")
    return path


class EngineOptions(BaseModel):
    """One engine: kind, interpreter, Spark version. What is None is not asked for."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Kind = Field(description="spark (the resident server), submit (spark-submit) or inline (child processes).")
    python: Annotated[Path, AfterValidator(_absolute)] | None = Field(
        default=None, description="Python interpreter of driver and workers; by default that of the command."
    )
    spark: str | None = Field(
        default=None, pattern=r"^\d+\.\d+\.\d+$", description="Required Spark version; any other is refused."
    )
    master: str | None = Field(
        default=None,
        pattern=MASTER,
        description="Where spark-submit runs it: local[2], spark://HOST:7077, yarn.",
    )
    conf: dict[str, str] = Field(
        default_factory=dict, description="Further Spark settings, such as spark.executor.memory."
    )

    @model_validator(mode="after")
    def _fits_its_kind(self) -> EngineOptions:
        if wrong := list(self._strangers()):
            raise ValueError("; ".join(wrong))
        return self

    def _strangers(self) -> Iterator[str]:
        for name, kinds in _ONLY_FOR.items():
            if getattr(self, name) and self.kind not in kinds:
                yield f"{name} is only for engines of kind {' or '.join(kinds)}"
        for name in self.conf:
            if name in OURS:
                yield f"conf: {name} cannot be set: workers depend on its value"
            elif is_secret_name(name.replace(".", "_")):
                yield f"conf: {name} would be visible to everyone on a command line"
            elif not name.startswith("spark."):
                yield f"conf: {name} is not a setting of Spark"


def engine_named(name: str, home: Path | None) -> EngineOptions:
    """Raises ConfigError, with every fault of its file, when there is none or it is not sound."""
    folder = folder_of(home) / "conf" / "engines"
    if "/" in name or name.startswith("."):
        raise ConfigError(f"{name!r} cannot name an engine")
    file = folder / f"{name}.yaml"
    if file.is_file():
        return _load(file)
    if name in KINDS:
        return EngineOptions(kind=name)
    known = {*KINDS, *(found.stem for found in folder.glob("*.yaml"))}
    raise ConfigError(f'There is no engine "{name}" in {folder}' + nearest(name, known))


def engine_for(document: dict[str, Any], settings: Settings, home: Path | None, flag: str = "") -> EngineOptions:
    """The engine of a connector: of the command line, else of its document, else of the settings."""
    return engine_named(flag or document.get("engine") or settings.engine, home)


def _load(file: Path) -> EngineOptions:
    documents = read_file(file)
    data = documents[0].data if len(documents) == 1 else None
    if not isinstance(data, dict):
        raise ConfigError("An engine file holds one mapping, such as {kind: submit}", where=str(file))
    try:
        return EngineOptions.model_validate(data)
    except ValidationError as error:
        faults = tuple(model_faults(error, EngineOptions, Written(data, str(file))))
        raise ConfigError("The engine is not valid", where=str(file), faults=faults) from None
