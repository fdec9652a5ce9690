"""Keys of masks that make tokens: references in documents, with ids, and never shown."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from connect_core.config import Settings, check, check_beside, read_text, with_keys
from connect_core.config.ruling import pipeline_of
from connect_core.errors import ConfigError
from connect_core.masking import mask_secrets
from connect_core.pipeline.digest import pipeline_digest
from connect_core.pipeline.key_ids import key_id_of
from connect_core.pipeline.shaping import Pipeline
from connect_core.pipeline.transforms.steps import step_of
from connect_core.sdk.testing.driving import records
from connect_core.sdk.values import Json

KEY = "0123456789abcdef-of-cards"
ENDS = "version: 1\nname: x\nsource: {file: {path: logs/*.log}}\nsink: {rocketmq: {connection: main, topic: lines}}\n"
FIELDS = "parse: {format: json, fields: {card: text, n: int64}}\n"


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    file = tmp_path / "keys"
    file.write_text(f"card={KEY}\nshort=abc\nother={KEY}x\n")
    return file


def text(token: str, key_id: str = "", path: str = "card") -> str:
    named = f", key_id: {key_id}" if key_id else ""
    return ENDS + FIELDS + f'transforms: [{{mask: {{{path}: {{token: "{token}"{named}}}}}}}]\n'


@pytest.fixture
def document(key_file: Path, home: Path, settings: Settings) -> Callable[..., Any]:
    def checked(key_id: str = key_id_of(KEY), path: str = "card") -> Any:
        written = text(f"${{file:{key_file}#card}}", key_id, path)
        return check(read_text(written, where="x")[0], home, settings).document

    return checked


def bodies(pipeline: Json, *given: bytes) -> list[bytes]:
    found: list[bytes] = Pipeline(pipeline).shape(records(list(given))).kept.column("value").to_pylist()
    return found


def token(value: str) -> str:
    return hmac.new(KEY.encode(), value.encode(), hashlib.sha256).hexdigest()


def test_a_value_becomes_the_same_token_wherever_it_is(document: Callable[..., Any]) -> None:
    made = bodies(with_keys(pipeline_of(document())), b'{"card":"4000"}', b'{"card":null}', b'{"card":"4000","n":1}')
    assert made == [
        f'{{"card":"{token("4000")}","n":null}}'.encode(),
        b'{"card":null,"n":null}',
        f'{{"card":"{token("4000")}","n":1}}'.encode(),
    ]
    assert bodies(with_keys(pipeline_of(document(path="n"))), b'{"n":7}') == [
        f'{{"card":null,"n":"{token("7")}"}}'.encode()
    ]


def test_documents_pins_and_digests_hold_the_reference_and_the_id_alone(document: Callable[..., Any]) -> None:
    pipeline = pipeline_of(document())
    assert KEY not in str(pipeline)
    assert pipeline["transforms"][0]["mask"]["card"]["key_id"] == key_id_of(KEY)
    other = {
        "transforms": [{"mask": {"card": {**pipeline["transforms"][0]["mask"]["card"], "key_id": "k" + "0" * 15}}}]
    }
    assert pipeline_digest(pipeline | other) != pipeline_digest(pipeline)


def test_a_key_is_masked_wherever_it_is_printed(document: Callable[..., Any]) -> None:
    revealed = with_keys(pipeline_of(document()))
    assert KEY in str(revealed)
    assert KEY not in mask_secrets(str(revealed))
    assert KEY not in repr(step_of(revealed["transforms"][0]))


def test_another_key_than_the_document_means_makes_nothing(document: Callable[..., Any], key_file: Path) -> None:
    pipeline = pipeline_of(document())
    key_file.write_text(f"card={KEY}!\n")
    with pytest.raises(ConfigError, match=rf"has the id {key_id_of(KEY + '!')}, and the document means") as told:
        with_keys(pipeline)
    assert KEY not in str(told.value)
    with pytest.raises(ValueError, match="is not the one with the id"):
        bodies(pipeline, b'{"card":"4000"}')
    key_file.unlink()
    with pytest.raises(ConfigError, match="A secret's file cannot be read"):
        with_keys(pipeline)


@pytest.mark.parametrize(
    ("name", "key_id", "words"),
    [
        ("card", "", f"write key_id: {key_id_of(KEY)}"),
        ("other", key_id_of(KEY), f"is a key with the id {key_id_of(KEY + 'x')}, and not {key_id_of(KEY)}"),
        ("short", key_id_of("abc"), "has less than 16 characters, which are found by trying"),
        ("none", "", "and it cannot be read here: A secret's file has no such key"),
    ],
)
def test_check_says_what_is_wrong_with_a_key(
    name: str, key_id: str, words: str, key_file: Path, faults: Callable[..., list[str]]
) -> None:
    [told] = faults(text(f"${{file:{key_file}#{name}}}", key_id))
    assert told.startswith("transforms.0.mask.card: line 6: ")
    assert words in told


@pytest.mark.parametrize(
    ("token", "words"),
    [
        (KEY, "the key is a secret in plain text"),
        ("x${env:A}", "the key is a secret in plain text"),
        ("${stack:mqtt_port}", "is no key"),
        ("${vault:x}", "is not a reference"),
    ],
)
def test_only_a_reference_is_a_key(token: str, words: str, faults: Callable[..., list[str]]) -> None:
    [told] = faults(text(token, key_id_of(KEY)))
    assert words in told
    assert KEY not in told


def test_a_key_that_cannot_be_read_here_is_not_asked_for_when_its_id_is_known(home: Path, settings: Settings) -> None:
    written = text("${file:/nowhere/keys#card}", key_id_of(KEY))
    assert check(read_text(written, where="x")[0], home, settings).document.transforms
    example = "examples: [{record: {payload: '{}'}, filtered: true}]\n"
    notices = check_beside(read_text(written + example, where="x")[0], home, settings, {}).notices
    assert any("need the key of a mask: A secret's file cannot be read" in one for one in notices), notices


@pytest.mark.parametrize(
    "way", [{"token": 1}, {"token": ""}, {"token": "a", "key_id": "x"}, {"token": "a", "with": "b"}]
)
def test_what_is_no_token_is_a_fault(way: Json) -> None:
    with pytest.raises(ValueError, match=r"card: a (token has|key_id is)"):
        step_of({"mask": {"card": way}})
