"""Keys of dead letters that are encrypted: references in documents, revealed for whoever seals or opens letters.

A letter says the id of its key, and no more. Which reference leads to that key is said by the document, in any of its
revisions: so a document of today names the key of new letters alone, and a key that has moved is found again by a
document that names it at its new place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from connect_core.config.document_errors import Encryption, Errors
from connect_core.config.secret_keys import MIN_KEY, key_of, reference_faults
from connect_core.config.written import Place
from connect_core.errors import ConfigError
from connect_core.pipeline.key_ids import key_id_of
from connect_core.sdk.values import Json
from connect_core.work import LetterKey, LetterPlace

if TYPE_CHECKING:
    from connect_core.pipeline.sealing import LetterCipher, LetterContent

_PLACE: Place = ("errors", "encrypt")


def letter_key(encrypt: Encryption | None) -> LetterKey | None:
    return None if encrypt is None else LetterKey(encrypt.key, encrypt.key_id or "")


def letter_key_faults(errors: Errors) -> Iterator[tuple[Place, str]]:
    if errors.encrypt:
        yield from ((_PLACE, words) for words in reference_faults(errors.encrypt.key, errors.encrypt.key_id))


def named_keys(documents: Iterable[Json]) -> tuple[LetterKey, ...]:
    """Those that these revisions of a document name, each once, in their order."""
    written = (document.get("errors", {}).get("encrypt") for document in documents)
    return tuple(dict.fromkeys(LetterKey(one["key"], one.get("key_id", "")) for one in written if one))


def encrypted_with(original: bytes, attributes: Json | None) -> str:
    """The id of the key that a letter is encrypted with; empty for one in plain."""
    from connect_core.pipeline.sealing import sealed_with

    return sealed_with(original, attributes)


def sealing_cipher(key: LetterKey) -> LetterCipher:
    """Raises ConfigError for a key that cannot be read, or is another one than the document means."""
    return _cipher(key, "Put the key that is meant there again, or name the other key with its own id in the document")


class LetterCiphers:
    """Opens the letters of a connector by the ids of their keys. `keys` are those that may be meant, the first ones
    first. Each is read when it is needed."""

    def __init__(self, keys: Sequence[LetterKey]) -> None:
        self._keys = keys
        self._ciphers: dict[str, LetterCipher] = {}

    def opened(self, original: bytes, attributes: Json | None, place: LetterPlace) -> LetterContent | None:
        """What a letter holds; None when that was changed since, or is that of another letter. Raises ConfigError,
        naming the reference and the id, when the key cannot be read."""
        from connect_core.pipeline.sealing import LetterContent, NotAuthentic, sealed_with

        key_id = sealed_with(original, attributes)
        if not key_id or (attributes is None and not self._is_named(key_id)):  # a payload may begin as it likes
            return LetterContent(original, attributes)
        if key_id not in self._ciphers:
            self._ciphers[key_id] = self._found(key_id)
        try:
            return self._ciphers[key_id].opened(original, place)
        except NotAuthentic:
            return None

    def _is_named(self, key_id: str) -> bool:
        return any(one.key_id == key_id for one in self._keys)

    def _found(self, key_id: str) -> LetterCipher:
        failed: ConfigError | None = None
        for key in (one for one in self._keys if one.key_id == key_id):
            try:
                return _cipher(key, "Put the key that is meant there again: letters that it has encrypted need it")
            except ConfigError as error:
                failed = failed or error
        raise failed or ConfigError(
            f"Dead letters are encrypted with the key {key_id}, which no revision of the document names",
            where="errors.encrypt",
            next_step="Apply a document that names this key by its reference",
        )


def _cipher(key: LetterKey, next_step: str) -> LetterCipher:
    from connect_core.pipeline.sealing import letter_cipher

    try:
        secret = key_of(key.reference)
    except ConfigError as error:
        raise ConfigError(
            f"The key {key.key_id} of dead letters cannot be read: {error.what}",
            where=key.reference,
            next_step=error.next_step,
        ) from None
    if (found := key_id_of(secret)) != key.key_id:
        raise ConfigError(
            f"The key of dead letters has the id {found}, and {key.key_id} is meant",
            where=key.reference,
            next_step=next_step,
        )
    if len(secret) < MIN_KEY:
        raise ConfigError(
            f"The key {key.key_id} of dead letters has less than {MIN_KEY} characters, which are found by trying",
            where=key.reference,
            next_step="Make one with `openssl rand -hex 32`, and name it with its own id in the document",
        )
    return letter_cipher(secret)
