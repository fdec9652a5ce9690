"""The settings of an installation: `defaults.yaml`, then the environment (`WAYBILL_…`), then flags.

Loaded once by each command and handed on as a value; nothing else reads these variables. Times are in seconds.
"""

from __future__ import annotations

import getpass
import json
import os
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator, model_validator

from connect_core.config.addresses import fault_of_pattern
from connect_core.config.home import folder_of
from connect_core.config.units import Seconds
from connect_core.config.written import read_text
from connect_core.errors import ConfigError, Fault

PREFIX = "WAYBILL_"
MASTER = r"^(local(\[[^\[\]]+\])?|(spark|k8s)://\S+|yarn)$"
"""Where spark-submit may run an application."""


_FORMER = {"linger_s": "idle_timeout_s"}
"""Names that settings had before; the environment may still use them."""


class Settings(BaseModel):
    """See `defaults.yaml` for what each means. Shares of a lease are checked against each other when it is built."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    lease_ttl_s: Seconds = Field(gt=0)
    lease_margin_s: Seconds = Field(gt=0)
    quantum_s: Seconds = Field(gt=0)
    idle_timeout_s: Seconds = Field(gt=0)
    send_timeout_s: Seconds = Field(gt=0)
    find_slice_s: Seconds = Field(gt=0)
    lanes: int = Field(ge=1, le=256)
    engine: str = Field(min_length=1, max_length=100)
    submit_master: str = Field(pattern=MASTER)
    driver_address: str
    files_roots: tuple[Path, ...]
    allowed_hosts: tuple[str, ...]
    user: str = Field(max_length=200)
    airflow_url: str
    airflow_user: str
    airflow_password: SecretStr

    @field_validator("files_roots", mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        return [part for part in value.split(os.pathsep) if part] if isinstance(value, str) else value

    @field_validator("allowed_hosts", mode="before")
    @classmethod
    def _hosts(cls, value: Any) -> Any:
        return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value

    @field_validator("allowed_hosts")
    @classmethod
    def _sound_hosts(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if wrong := next(filter(None, map(fault_of_pattern, value)), ""):
            raise ValueError(wrong)
        return value

    @field_validator("driver_address")
    @classmethod
    def _one_address(cls, value: str) -> str:
        """Not by pydantic's own type, which each command would load for 27 ms."""
        if value and ip_address(value).is_unspecified:
            raise ValueError(f"{value} is every address of this host: name the one that other hosts reach")
        return value

    @model_validator(mode="after")
    def _quantum_fits_into_the_lease(self) -> Settings:
        if self.lease_margin_s < self.send_timeout_s:
            raise ValueError(
                f"lease_margin_s ({self.lease_margin_s:g}) must be at least send_timeout_s ({self.send_timeout_s:g}): "
                "the last send must have failed before another attempt may write"
            )
        shares = self.quantum_s + self.send_timeout_s + self.lease_margin_s
        if shares >= self.lease_ttl_s:
            raise ValueError(
                f"quantum_s + send_timeout_s + lease_margin_s ({shares:g}) must be below "
                f"lease_ttl_s ({self.lease_ttl_s:g}): a quantum and its last send must end while its lease holds"
            )
        return self


def load_settings(home: Path | None = None, environ: Mapping[str, str] = os.environ, **flags: Any) -> Settings:
    """The settings in force. `flags` that are None were not given. Raises ConfigError with every fault."""
    values = {**_defaults(), **_from_environment(environ), **{k: v for k, v in flags.items() if v is not None}}
    try:
        settings = Settings(**values)
    except ValidationError as error:
        faults = tuple(
            Fault(".".join(map(str, e["loc"])), e["msg"].removeprefix("Value error, ")) for e in error.errors()
        )
        raise ConfigError(
            "The settings are not valid",
            where="environment and flags",
            faults=faults,
            next_step=f"Set them as {PREFIX}<NAME>, e.g. {PREFIX}QUANTUM_S=5",
        ) from None
    roots = tuple(_absolute(root, home) for root in settings.files_roots) or (folder_of(home),)
    return settings.model_copy(update={"files_roots": roots, "user": settings.user or _user()})


def unknown_variables(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Variables that look like a misspelt setting, each with the setting it looks like. For `waybill doctor`."""
    known = {PREFIX + name.upper() for name in Settings.model_fields}
    known |= {PREFIX + name for name in ("HOME", "DATABASE_URL", "SERVER", "TOKEN_FILE", "CA_FILE")}
    strangers = (name for name in environ if name.startswith(PREFIX) and name not in known)
    return {name: near[0] for name in strangers if (near := get_close_matches(name, known, n=1, cutoff=0.85))}


@cache
def _defaults() -> dict[str, Any]:
    text = (files("connect_core.config") / "defaults.yaml").read_text(encoding="utf-8")
    data: dict[str, Any] = read_text(text, where="defaults.yaml")[0].data
    return data


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    named = {**_FORMER, **{name: name for name in Settings.model_fields}}
    given = {name: environ[PREFIX + word.upper()] for word, name in named.items() if PREFIX + word.upper() in environ}
    if given.get("files_roots", "").startswith("["):
        given["files_roots"] = _json_list(given["files_roots"])
    return dict(given)


def _json_list(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def _absolute(root: Path, home: Path | None) -> Path:
    return (folder_of(home) / root.expanduser()).resolve()


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"
