"""What references stood for is in no error, failure, fault, gap or reject, however it is quoted."""

from __future__ import annotations

import html
import json
import pickle
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread
from urllib.parse import quote, quote_plus
from xml.sax import saxutils

import pytest
from pydantic import BaseModel, ValidationError

from connect_core import errors, masking
from connect_core.config import reveal
from connect_core.engine.failures import kept
from connect_core.errors import ConfigError, EngineFailed, Failure, Fault, WaybillError
from connect_core.masking import mask_secrets, names_secret, remember
from connect_core.sdk.values import Gap, Reject

TOKEN = 'a/b "c" ä'


def _all(root: type[WaybillError]) -> Iterator[type[WaybillError]]:
    yield root
    for child in root.__subclasses__():
        if child.__module__ == errors.__name__:
            yield from _all(child)


def test_what_two_threads_remember_at_once_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """A set that is replaced as a whole is replaced by one thread after the other."""
    begun, other = Event(), Thread(target=remember, args=("the second secret",), kwargs={"secret": True})
    forms_of = masking._forms_of

    def slow(values: frozenset[str]) -> list[str]:
        if not begun.is_set():
            begun.set()
            other.start()
            other.join(0.2)  # it has to wait; without a lock it is done by now, and forgotten
        return forms_of(values)

    monkeypatch.setattr(masking, "_forms_of", slow)
    remember("the first secret", secret=True)
    other.join()
    assert mask_secrets("the first secret, the second secret") == "***, ***"


@pytest.fixture
def known() -> None:
    remember(TOKEN, secret=True)


@pytest.mark.parametrize(
    "form",
    [
        TOKEN,
        quote(TOKEN),
        quote(TOKEN, safe=""),
        quote(TOKEN, safe="").replace("%2F", "%2f").replace("%C3%A4", "%c3%a4"),
        quote(quote(TOKEN, safe=""), safe=""),
        quote(quote_plus(TOKEN)),
        json.dumps(TOKEN),
        json.dumps(TOKEN, ensure_ascii=False),
        json.dumps(json.dumps(TOKEN)[1:-1]),
        repr(TOKEN),
        ascii(TOKEN),
        repr(TOKEN.encode()),
        repr(TOKEN.encode("latin-1")),
        repr(repr(TOKEN)[1:-1]),
        html.escape(TOKEN),
        html.escape(json.dumps(TOKEN)[1:-1]),
    ],
)
@pytest.mark.usefixtures("known")
def test_a_value_is_masked_as_it_is_written_in_texts(form: str) -> None:
    assert mask_secrets(f"<{form}>").strip("<>\"'b") == "***"
    assert names_secret(form)


@pytest.mark.parametrize(
    "written", [shlex.quote, json.dumps, repr, lambda text: repr(f'"{text}"'), html.escape, saxutils.escape]
)
def test_a_value_with_an_apostrophe_is_masked(written: Callable[[str], str]) -> None:
    remember("it's & <all>", secret=True)
    assert mask_secrets(written("it's & <all>")).strip("\"'") == "***"


class _Numbers(BaseModel):
    first: int
    second: int


def test_what_pydantic_quotes_is_masked_for_it_may_be_the_half_of_a_value() -> None:
    with pytest.raises(ValidationError) as raised:
        _Numbers.model_validate({"first": f"{'x' * 10}{TOKEN}{'y' * 100}", "second": "seen"})
    assert mask_secrets(str(raised.value)) == str(raised.value), "nothing is known, nothing masked"
    remember(TOKEN, secret=True)
    shown = mask_secrets(str(raised.value))
    assert shown.count("input_value=***, input_type=str") == 2
    assert "unable to parse string as an integer" in shown
    assert "xxx" not in shown


def test_the_longest_value_is_masked_first_and_short_ones_are_not() -> None:
    for value in ("abcd", "abcdef", "abc"):
        remember(value, secret=False)
    assert mask_secrets("abcdef abcd abc") == "*** *** abc"
    assert not names_secret("abcdef"), "it is masked, and no secret"


@pytest.mark.parametrize("kind", list(_all(WaybillError)))
@pytest.mark.usefixtures("known")
def test_an_error_has_it_nowhere(kind: type[WaybillError]) -> None:
    error = kind(f"401 for {TOKEN}", where=f"http://u:{quote(TOKEN)}@h/", next_step=f"look at {TOKEN!r}")
    again: WaybillError = pickle.loads(pickle.dumps(error))
    for one in (error, again, Failure.of(error).as_error()):
        assert str(one) == "401 for *** [http://u:***@h/]. look at '***'"
    assert "a/b" not in repr((error, vars(error), error.args, Failure.of(error)))


@pytest.mark.usefixtures("known")
def test_texts_of_a_plug_in_that_are_stored_have_it_nowhere() -> None:
    fault = Fault("a", TOKEN)
    given = [
        Failure.of(ValueError(TOKEN)),
        Failure("Any", TOKEN, TOKEN, TOKEN),
        Gap(0, 0, 1, TOKEN),
        Reject(0, 0, "write", "Bad", TOKEN, b""),
        ConfigError("wrong", faults=(fault,)),
    ]
    assert "a/b" not in repr(given) + str(given[-1])


@pytest.mark.usefixtures("known")
def test_the_log_of_crashes_has_it_nowhere(tmp_path: Path) -> None:
    kept(EngineFailed("it crashed"), f"ValueError: {TOKEN}", tmp_path / "log")
    assert (tmp_path / "log").read_text().endswith("ValueError: ***\n")


@pytest.mark.parametrize(
    ("options", "secret"),
    [
        ({"token": "${env:NAME}"}, True),
        ({"list": [{"password": "x${env:NAME}"}]}, True),
        ({"any": "${env:NAME_OF_A_TOKEN}"}, True),
        ({"url": "https://me:${env:NAME}@host/path"}, True),
        ({"url": "https://host/${env:NAME}@x"}, False),
        ({"anything": "${env:NAME}"}, False),
    ],
)
def test_what_is_resolved_is_masked_and_a_secret_where_its_place_says_so(
    options: dict[str, object], secret: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NAME", "the value")
    monkeypatch.setenv("NAME_OF_A_TOKEN", "the value")
    reveal(options)
    assert mask_secrets("of the value") == "of ***"
    assert names_secret("of the value") == secret


@pytest.mark.parametrize(("value", "shown"), [("host-1:9876", "host-1:9876"), ("me:pass@host-1", "***")])
def test_where_something_is_stays_readable_unless_someone_signs_in_there(
    value: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NAME", value)
    reveal({"name_servers": ["${env:NAME}"]})
    assert mask_secrets(f"no answer from {value}") == f"no answer from {shown}"


def test_a_file_that_is_referred_to_holds_a_secret(tmp_path: Path) -> None:
    (tmp_path / "dsn").write_text("the value \n")
    reveal({"dsn": f"${{file:{tmp_path}/dsn}}"})
    assert names_secret("the value"), "also without the space behind it"
