"""Keys of dead letters: references in documents, found again by their ids, and never shown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from connect_core.config import LetterCiphers, Settings, check, named_keys, read_text, resolve, sealing_cipher
from connect_core.errors import ConfigError
from connect_core.pipeline.key_ids import key_id_of
from connect_core.pipeline.sealing import letter_cipher
from connect_core.sdk.values import Json, Reject
from connect_core.work import SEALED_MARK, LetterKey, LetterPlace

KEY, OLD = "0123456789abcdef-of-letters", "fedcba9876543210-of-before"
ENDS = "version: 1\nname: x\nsource: {file: {path: logs/*.log}}\nsink: {file: {path: out.log}}\n"
PLACE = LetterPlace("u", "live", "q", 0, 7, 0, "parse")
REJECT = Reject(7, 0, "parse", "NotParsed", "no JSON", b"kanarien", "t", {"key": "vogel"})


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    file = tmp_path / "keys"
    file.write_text(f"now={KEY}\nbefore={OLD}\nshort=abc\n")
    return file


def text(reference: str, key_id: str = "") -> str:
    named = f", key_id: {key_id}" if key_id else ""
    return f'{ENDS}errors: {{tolerance: all, encrypt: {{key: "{reference}"{named}}}}}\n'


def test_a_run_knows_the_reference_and_the_id(key_file: Path, home: Path, settings: Settings) -> None:
    written = text(f"${{file:{key_file}#now}}", key_id_of(KEY))
    document = check(read_text(written, where="x")[0], home, settings).document
    found = resolve(document, home, settings, "0" * 12).encrypt
    assert found == LetterKey(f"${{file:{key_file}#now}}", key_id_of(KEY))
    assert sealing_cipher(found).key_id == key_id_of(KEY)


@pytest.mark.parametrize(
    ("name", "key_id", "words"),
    [
        ("now", "", f"write key_id: {key_id_of(KEY)}"),
        ("before", key_id_of(KEY), f"is a key with the id {key_id_of(OLD)}, and not {key_id_of(KEY)}"),
        ("short", key_id_of("abc"), "has less than 16 characters, which are found by trying"),
        ("none", "", "and it cannot be read here: A secret's file has no such key"),
        ("now", "k1", "a key_id is k and 15 digits of 0-9 and a-f"),
    ],
)
def test_check_says_what_is_wrong_with_a_key(
    name: str, key_id: str, words: str, key_file: Path, faults: Callable[..., list[str]]
) -> None:
    [told] = faults(text(f"${{file:{key_file}#{name}}}", key_id))
    assert told.startswith("errors.encrypt")
    assert words in told


def test_only_a_reference_is_a_key(faults: Callable[..., list[str]]) -> None:
    [told] = faults(text(KEY, key_id_of(KEY)))
    assert "the key is a secret in plain text" in told
    assert KEY not in told


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (f"now={OLD}\n", rf"has the id {key_id_of(OLD)}, and {key_id_of(KEY)} is meant"),
        ("", f"The key {key_id_of(KEY)} of dead letters cannot be read: A secret's file has no such key"),
    ],
)
def test_a_key_that_is_not_the_one_that_is_meant_seals_and_opens_nothing(
    lines: str, words: str, key_file: Path
) -> None:
    key = LetterKey(f"${{file:{key_file}#now}}", key_id_of(KEY))
    sealed = letter_cipher(KEY).sealed(REJECT, PLACE)
    key_file.write_text(lines)
    with pytest.raises(ConfigError, match=words) as told:
        sealing_cipher(key)
    with pytest.raises(ConfigError, match=words):
        LetterCiphers([key]).opened(sealed.original, sealed.attributes, PLACE)
    assert key.reference in str(told.value)
    assert OLD not in str(told.value)


def test_a_short_key_seals_nothing(key_file: Path) -> None:
    with pytest.raises(ConfigError, match="has less than 16 characters"):
        sealing_cipher(LetterKey(f"${{file:{key_file}#short}}", key_id_of("abc")))


def documents(key_file: Path, *named: tuple[str, str]) -> list[Json]:
    """Revisions, of which the first two say nothing of it."""
    keys = [{"key": f"${{file:{key_file}#{name}}}", "key_id": id_} for name, id_ in named]
    return [{}, {"errors": {"tolerance": "all"}}, *({"errors": {"encrypt": key}} for key in keys)]


def test_each_letter_opens_with_the_key_that_a_revision_names(key_file: Path) -> None:
    now, before = ("now", key_id_of(KEY)), ("before", key_id_of(OLD))
    keys = named_keys(documents(key_file, now, before, now))
    assert [one.key_id for one in keys] == [now[1], before[1]]
    ciphers = LetterCiphers(keys)
    for secret in (KEY, OLD):
        sealed = letter_cipher(secret).sealed(REJECT, PLACE)
        assert ciphers.opened(sealed.original, sealed.attributes, PLACE) == (b"kanarien", {"key": "vogel"})
    with pytest.raises(ConfigError, match="which no revision of the document names"):
        LetterCiphers([]).opened(sealed.original, sealed.attributes, PLACE)


def test_a_key_that_has_moved_is_found_at_its_new_place(key_file: Path) -> None:
    keys = named_keys(documents(key_file, ("gone", key_id_of(KEY)), ("now", key_id_of(KEY))))
    sealed = letter_cipher(KEY).sealed(REJECT, PLACE)
    assert LetterCiphers(keys).opened(sealed.original, sealed.attributes, PLACE) is not None


def test_letters_in_plain_need_no_key_whatever_they_begin_with() -> None:
    like_one = SEALED_MARK + key_id_of(KEY).encode() + b"x" * 50
    for original, attributes in ((b"x", {}), (b"", None), (like_one, {}), (like_one, None)):
        assert LetterCiphers([]).opened(original, attributes, PLACE) == (original, attributes)


def test_a_letter_that_was_changed_does_not_open(key_file: Path) -> None:
    sealed = letter_cipher(KEY).sealed(REJECT, PLACE)
    ciphers = LetterCiphers([LetterKey(f"${{file:{key_file}#now}}", key_id_of(KEY))])
    assert ciphers.opened(sealed.original, sealed.attributes, PLACE._replace(offset=8)) is None
    assert ciphers.opened(sealed.original[:-1], sealed.attributes, PLACE) is None
