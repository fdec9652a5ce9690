"""Dead letters that are encrypted, opened for whoever may read their key here."""

from __future__ import annotations

from dataclasses import replace

from connect_core.config import LetterCiphers, encrypted_with, named_keys
from connect_core.errors import DataError
from connect_core.ledger import Connector, DeadLetter, Ledger

__all__ = ["LetterOpener", "key_id_of"]


class LetterOpener:
    """For the letters of one connector, by the keys that any revision of its document names."""

    def __init__(self, ledger: Ledger, connector: Connector) -> None:
        self._connector = connector
        keys = named_keys(one.document for one in reversed(ledger.revisions(connector.uid)))
        self.is_needed = bool(keys)
        self._ciphers = LetterCiphers(keys)

    def opened(self, letter: DeadLetter) -> DeadLetter:
        """The letter in plain. Raises ConfigError when its key cannot be read, DataError when it was changed."""
        held = self._ciphers.opened(letter.original, letter.attributes, letter.place)
        if held is None:
            raise DataError(
                f"Dead letter {letter.id} does not open: what the ledger keeps of it was changed since it was"
                " encrypted, or is that of another dead letter",
                where=f"connector {self._connector.name}, partition {letter.partition.key}, offset {letter.offset}",
                next_step="Move its record again from the source with `waybill backfill`, and discard it",
            )
        return replace(letter, original=held.original, attributes=held.attributes)


def key_id_of(letter: DeadLetter) -> str:
    """Of the key that it is encrypted with; empty for one in plain."""
    return encrypted_with(letter.original, letter.attributes)
