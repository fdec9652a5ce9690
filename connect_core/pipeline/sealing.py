"""Dead letters that nobody reads without their key: sealed where a record is rejected, opened where it is used. Pure.

AES-256-GCM with a random nonce. The key is made of a secret by HKDF, so that it is of no use anywhere else. Payload and
attributes are sealed together, and bound to the place of their letter: at the place of another one they do not open.

What stands in the ledger: as `original` a mark, the id of the key, the nonce and what is sealed; as `attributes`, where
the whole record is kept, the id of the key alone. So the ledger knows which letters are whole, as of those in plain.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from connect_core.errors import ConfigError
from connect_core.pipeline.key_ids import is_key_id, key_id_of
from connect_core.sdk.values import Json, Reject
from connect_core.work import SEALED_MARK, LetterPlace

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

SEALED = "sealed"
"""Of the attributes of a letter that is sealed: the id of its key. No record has one of this name."""
_PURPOSE = b"waybill dead letters 1"
_KEY_BYTES, _NONCE_BYTES, _ID_BYTES, _LENGTH_BYTES = 32, 12, 16, 4
_HEAD = len(SEALED_MARK) + _ID_BYTES


class NotAuthentic(Exception):
    """What is sealed was changed, or is that of another letter."""


class LetterContent(NamedTuple):
    """What a letter holds: `attributes` as `Reject` has them."""

    original: bytes
    attributes: Json | None


def sealed_with(original: bytes, attributes: Mapping[str, object] | None) -> str:
    """The id of the key that a letter is sealed with; empty for one in plain."""
    if attributes is not None:
        return str(attributes.get(SEALED, ""))
    id_ = original[len(SEALED_MARK) : _HEAD].decode("ascii", "replace")
    return id_ if original.startswith(SEALED_MARK) and is_key_id(id_) else ""


@dataclass(frozen=True, repr=False)
class LetterCipher:
    """Seals and opens letters with one key."""

    key_id: str
    _cipher: AESGCM

    def sealed(self, reject: Reject, place: LetterPlace) -> Reject:
        kept = json.dumps(reject.attributes).encode()
        nonce = os.urandom(_NONCE_BYTES)
        plain = len(kept).to_bytes(_LENGTH_BYTES, "big") + kept + reject.original
        hidden = self._cipher.encrypt(nonce, plain, _bound(self.key_id, place))
        original = b"".join((SEALED_MARK, self.key_id.encode(), nonce, hidden))
        return replace(
            reject,
            original=original,
            attributes=None if reject.attributes is None else {SEALED: self.key_id},
        )

    def opened(self, original: bytes, place: LetterPlace) -> LetterContent:
        """Raises NotAuthentic."""
        from cryptography.exceptions import InvalidTag

        nonce, hidden = original[_HEAD : _HEAD + _NONCE_BYTES], original[_HEAD + _NONCE_BYTES :]
        try:
            plain = self._cipher.decrypt(nonce, hidden, _bound(self.key_id, place))
        except (InvalidTag, ValueError):
            raise NotAuthentic from None
        begin = _LENGTH_BYTES + int.from_bytes(plain[:_LENGTH_BYTES], "big")
        return LetterContent(plain[begin:], json.loads(plain[_LENGTH_BYTES:begin]))


def letter_cipher(secret: str) -> LetterCipher:
    """Raises ConfigError where the package is missing that seals."""
    try:
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF
    except ImportError:
        raise ConfigError(
            "Dead letters are encrypted, and the package for it is missing",
            where="errors.encrypt",
            next_step="Install waybill[encryption] where workers and commands run",
        ) from None
    key = HKDF(hashes.SHA256(), _KEY_BYTES, salt=None, info=_PURPOSE).derive(secret.encode())
    return LetterCipher(key_id_of(secret), AESGCM(key))


def _bound(key_id: str, place: LetterPlace) -> bytes:
    """The associated data: one text for each key and place."""
    return json.dumps([_PURPOSE.decode(), key_id, *place]).encode()
