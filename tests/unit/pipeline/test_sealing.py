"""What is sealed is read with its key, at its place, and as it was; by nobody else."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import pytest

from connect_core.errors import ConfigError
from connect_core.pipeline.key_ids import key_id_of
from connect_core.pipeline.sealing import LetterCipher, NotAuthentic, letter_cipher, sealed_with
from connect_core.sdk.values import Json, Reject
from connect_core.work import SEALED_MARK, LetterPlace

SECRET = "correct horse battery staple"
PLACE = LetterPlace("u", "live", "q", 2, 7, 1, "parse")
HEADERS: Json = {"key": "kanarien", "headers": [["a", "vogel"], ["a", ""]], "timestamp": -5}


def reject(original: bytes = b"kanarien \xff", attributes: Json | None = HEADERS) -> Reject:
    return Reject(7, 1, "parse", "NotParsed", "no JSON", original, "t", attributes)


@pytest.fixture
def cipher() -> LetterCipher:
    return letter_cipher(SECRET)


@pytest.mark.parametrize("original", [b"", b"kanarien \xff", SEALED_MARK + b"k" * 40, b"x" * (1 << 20)])
@pytest.mark.parametrize("attributes", [None, {}, HEADERS, {"no_value": True}])
def test_it_opens_as_it_was(cipher: LetterCipher, original: bytes, attributes: Json | None) -> None:
    sealed = cipher.sealed(reject(original, attributes), PLACE)
    assert tuple(letter_cipher(SECRET).opened(sealed.original, PLACE)) == (original, attributes)
    assert sealed_with(sealed.original, sealed.attributes) == key_id_of(SECRET)
    assert (sealed.attributes is None) == (attributes is None)
    assert replace(sealed, original=original, attributes=attributes) == reject(original, attributes)


def test_nothing_of_it_is_seen_and_no_two_are_alike(cipher: LetterCipher) -> None:
    first, second = (cipher.sealed(reject(), PLACE) for _ in range(2))
    assert b"kanarien" not in first.original
    assert first.attributes == {"sealed": key_id_of(SECRET)}
    assert first.original != second.original
    assert SECRET not in repr(cipher)


@pytest.mark.parametrize(
    "change",
    [
        {"uid": "v"},
        {"stream": "backfill-1"},
        {"partition_id": "r"},
        {"incarnation": 1},
        {"offset": 8},
        {"ordinal": 0},
        {"stage": "encode"},
    ],
)
def test_it_does_not_open_at_the_place_of_another_one(cipher: LetterCipher, change: dict[str, Any]) -> None:
    sealed = cipher.sealed(reject(), PLACE)
    with pytest.raises(NotAuthentic):
        cipher.opened(sealed.original, PLACE._replace(**change))


def test_a_changed_byte_a_cut_and_another_key_are_noticed(cipher: LetterCipher) -> None:
    sealed = cipher.sealed(reject(), PLACE).original
    behind = len(SEALED_MARK) + 16
    for place in range(behind, len(sealed)):
        with pytest.raises(NotAuthentic):
            cipher.opened(sealed[:place] + bytes([sealed[place] ^ 1]) + sealed[place + 1 :], PLACE)
    for end in (behind, behind + 5, behind + 12, len(sealed) - 1):
        with pytest.raises(NotAuthentic):
            cipher.opened(sealed[:end], PLACE)
    with pytest.raises(NotAuthentic):
        letter_cipher(f"{SECRET}.").opened(sealed, PLACE)


@pytest.mark.parametrize(
    ("original", "attributes"),
    [(b"x", {}), (b"", None), (SEALED_MARK, None), (SEALED_MARK + b"no id of a key..", None), (SEALED_MARK, HEADERS)],
)
def test_what_is_in_plain_says_no_key(original: bytes, attributes: Json | None) -> None:
    assert sealed_with(original, attributes) == ""


def test_where_the_package_is_missing_it_is_said_which(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", None)
    with pytest.raises(ConfigError, match=r"Install waybill\[encryption\]"):
        letter_cipher(SECRET)
