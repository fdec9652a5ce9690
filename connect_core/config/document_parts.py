"""What every part of a connector document is, and its ends as they are written."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator


class DocumentPart(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Endpoint(DocumentPart):
    """One end: `{SYSTEM: {options}}`."""

    system: str
    options: dict[str, Any]

    @model_validator(mode="before")
    @classmethod
    def _single(cls, value: Any) -> Any:
        if not isinstance(value, dict) or len(value) != 1:
            found = f"{', '.join(map(str, value)) or 'nothing'}" if isinstance(value, dict) else repr(value)
            raise ValueError(f"needs exactly one system with its options, as {{file: {{path: in.log}}}}; found {found}")
        system, options = next(iter(value.items()))
        if options is not None and not isinstance(options, dict):
            raise ValueError(f"the options of {system} must be a mapping, not {options!r}")
        return {"system": str(system), "options": options or {}}
