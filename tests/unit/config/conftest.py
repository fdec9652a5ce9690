"""What the tests of documents share: a home in a folder of its own, and its settings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from connect_core.config import Settings, check, create_home, load_settings, read_text
from connect_core.errors import ConfigError


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WAYBILL_HOME", raising=False)
    monkeypatch.delenv("WAYBILL_DATABASE_URL", raising=False)
    return create_home()


@pytest.fixture
def settings(home: Path) -> Settings:
    return load_settings(home)


@pytest.fixture
def faults(home: Path, settings: Settings) -> Callable[..., list[str]]:
    """Every fault of a text, as a person reads it; empty when it is sound."""

    def found(text: str, **how: Any) -> list[str]:
        try:
            for written in read_text(text, where="test.yaml", **how):
                check(written, home, settings)
        except ConfigError as error:
            return [str(fault) for fault in error.faults] or [error.what]
        return []

    return found
