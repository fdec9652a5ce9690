"""Ids of keys, which are no secrets: documents say by them which key they mean. Pure, light."""

from __future__ import annotations

import hashlib
import hmac
import re

_ID_OF = b"waybill key id"
_FIRST, _ID_DIGITS = "k", 15
"""It begins with a letter: YAML would take some digits with an e for a number."""
_KEY_ID = re.compile(f"{_FIRST}[0-9a-f]{{{_ID_DIGITS}}}")
KEY_ID_EXAMPLE = "k3f9a0c51d2e4b78"
KEY_ID_FORM = f"a key_id is {_FIRST} and {_ID_DIGITS} digits of 0-9 and a-f"


def key_id_of(key: str) -> str:
    """What may be shown of a key: it tells whether two are the same, and nothing else."""
    return _FIRST + hmac.new(key.encode(), _ID_OF, hashlib.sha256).hexdigest()[:_ID_DIGITS]


def is_key_id(text: str) -> bool:
    return _KEY_ID.fullmatch(text) is not None
