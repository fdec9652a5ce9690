"""Whose code an exception comes from."""

from __future__ import annotations

import pytest

from connect_core import origin
from connect_core.errors import Failure
from connect_core.sdk.batches import record_batch


def _raised(code: str, name: str, path: str) -> Exception:
    """By code of a module of this name that stands in this file."""
    with pytest.raises((ArithmeticError, AttributeError)) as raised:
        exec(compile(code, path, "exec"), {"__name__": name, "record_batch": record_batch})
    return raised.value


@pytest.fixture(autouse=True)
def _known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(origin, "_SYSTEMS", {})
    origin.know_package("tenant.plugin", "lake")


def test_a_package_is_told_with_the_place_in_it() -> None:
    error = _raised("\n1 / 0", "tenant.deep.sink", "/site/tenant/deep/sink.py")
    assert origin.origin_of(error) == ("tenant/deep/sink.py:2", "lake", "tenant")
    failure = Failure.of(error)
    assert failure.words == (
        "Unexpected error: ZeroDivisionError: division by zero [system lake, tenant/deep/sink.py:2]."
        " The package tenant brings system lake: its authors can correct this"
    )
    assert "lake" in Failure.unexpected(error, "reading", "partition p").next_step


def test_what_a_package_has_called_was_given_by_it() -> None:
    error = _raised("record_batch([None], range(1))", "tenant", "/site/tenant/__init__.py")
    assert origin.origin_of(error).package == "tenant"


def test_what_no_plug_in_has_called_is_ours() -> None:
    with pytest.raises(AttributeError) as raised:
        record_batch([None], range(1))  # type: ignore[list-item]
    found = origin.origin_of(raised.value)
    assert (found.place.split(":")[0], found.system) == ("connect_core/sdk/batches.py", "")
    assert Failure.of(raised.value).words.startswith("Unexpected error, please report it: AttributeError")
    assert origin.origin_of(ValueError()).place == "an unknown place"
