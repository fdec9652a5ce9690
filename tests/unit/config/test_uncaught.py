"""What nobody catches is written without secrets, by whatever hook; and what was there before stays in place."""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
import threading
from collections.abc import Iterator

import pytest

from connect_core.config import reveal
from connect_core.config.uncaught import mask_uncaught

SECRET = "hunter2/ä"


@pytest.fixture(autouse=True)
def hooked(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As in a process that reveals its first secret."""
    monkeypatch.setenv("A_PASSWORD", SECRET)
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    monkeypatch.setattr(sys, "unraisablehook", sys.__unraisablehook__)
    monkeypatch.setattr(threading, "excepthook", threading.__excepthook__)
    monkeypatch.setattr(logging.getLogger("asyncio"), "filters", [])
    mask_uncaught.cache_clear()
    yield
    mask_uncaught.cache_clear()


def _raise_in_thread(text: str, name: str = "network") -> None:
    def fail() -> None:
        raise ValueError(f"no login with {text}")

    thread = threading.Thread(target=fail, name=name)
    thread.start()
    thread.join()


def test_a_thread_names_no_secret(capfd: pytest.CaptureFixture[str]) -> None:
    reveal({"password": "${env:A_PASSWORD}"})
    _raise_in_thread(SECRET, f"of {SECRET}")
    shown = capfd.readouterr().err
    assert "Exception in thread of ***:\nTraceback" in shown
    assert shown.endswith("ValueError: no login with ***\n")


class _Client:
    def __init__(self, text: str) -> None:
        self.text = text

    def __del__(self) -> None:
        raise ValueError(f"closed by {self.text}")


def test_a_finalizer_names_no_secret(capfd: pytest.CaptureFixture[str]) -> None:
    reveal({"password": "${env:A_PASSWORD}"})
    _Client(SECRET)
    shown = capfd.readouterr().err
    assert shown.startswith("Exception ignored in: <function _Client.__del__")
    assert shown.endswith("ValueError: closed by ***\n")


def test_the_end_of_a_process_names_no_secret(capfd: pytest.CaptureFixture[str]) -> None:
    reveal({"password": "${env:A_PASSWORD}"})
    error = ValueError(SECRET)
    error.add_note(f"a note on {SECRET}")
    sys.excepthook(type(error), error, None)
    assert capfd.readouterr().err == "ValueError: ***\na note on ***\n"


def test_a_task_of_a_loop_names_no_secret(caplog: pytest.LogCaptureFixture) -> None:
    async def fail() -> None:
        raise ValueError(SECRET)

    async def forget() -> None:
        failing = asyncio.create_task(fail())
        await asyncio.sleep(0)
        del failing
        gc.collect()

    reveal({"password": "${env:A_PASSWORD}"})
    asyncio.run(forget())
    assert "Task exception was never retrieved" in caplog.text
    assert "ValueError: ***" in caplog.text
    assert SECRET not in caplog.text


def test_what_has_no_secret_goes_to_the_hook_that_was_there(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    seen: list[object] = []
    monkeypatch.setattr(threading, "excepthook", lambda failed: seen.append(str(failed.exc_value)))
    reveal({"password": "${env:A_PASSWORD}"})
    _raise_in_thread("anything")
    _raise_in_thread(SECRET)
    assert seen == ["no login with anything"]
    assert capfd.readouterr().err.endswith("ValueError: no login with ***\n")


def test_a_thread_that_ends_itself_writes_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    reveal({"password": "${env:A_PASSWORD}"})
    thread = threading.Thread(target=sys.exit, args=(SECRET,))
    thread.start()
    thread.join()
    assert capfd.readouterr().err == ""


def test_a_process_that_knows_no_secret_has_no_hook() -> None:
    reveal({"topic": "orders", "port": 1883})
    assert sys.excepthook is sys.__excepthook__
    assert threading.excepthook is threading.__excepthook__
