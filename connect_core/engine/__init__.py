"""Where lanes run. `engine` is the way in; drivers and workers import nothing of Spark before they need it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from connect_core.engine.failures import log_of
from connect_core.errors import ConfigError

if TYPE_CHECKING:
    from connect_core.work import Engine

KINDS = ("spark", "inline")


def engine(kind: str, *, remote: str | None = None, spark: str | None = None, home: Path | None = None) -> Engine:
    """The engine of a kind. `remote` is the address of the Spark Connect server (`sc://localhost:PORT/;token=…`);
    only "spark" has one. `spark` is the version that Spark must have. What a crash leaves to read goes into a log of
    `home`. Nothing is started or connected to before the first lane. Runs with spark-submit are programs of their own:
    see `submit`."""
    log = log_of(home) if home else None
    if kind == "inline":
        from connect_core.engine.inline import InlineEngine

        return InlineEngine(log=log)
    if kind == "spark":
        from connect_core.engine.spark_checks import check_asked_for
        from connect_core.engine.spark_on_demand import SparkOnDemand

        if remote is None:
            raise ConfigError("The engine has no address", next_step="Start one with `waybill engine start`")
        if spark is not None:
            check_asked_for(spark)
        return SparkOnDemand(remote, log)
    raise ConfigError(f"There is no engine {kind!r}", next_step=f"Choose one of: {', '.join(KINDS)}")
