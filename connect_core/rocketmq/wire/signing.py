"""Signs the fields of a request for brokers with access control (versions 1.0 and 2.0 share this wire format).

Covered by the signature: the values of all fields sent (sorted by name, code points, `Signature` left out) and the
body. So sign last. Not covered: code, opaque and time.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field

ACCESS_KEY = "AccessKey"
SECURITY_TOKEN = "SecurityToken"
SIGNATURE = "Signature"


@dataclass(frozen=True)
class Credentials:
    """With access control 2.0 the access key is the user name and the secret key the password."""

    access_key: str
    secret_key: str = field(repr=False)
    security_token: str | None = field(default=None, repr=False)


def signature(fields: Mapping[str, str], body: bytes, secret_key: str) -> str:
    """Base64 of HMAC-SHA1 over the sorted values and the body."""
    content = "".join(fields[name] for name in sorted(fields) if name != SIGNATURE).encode() + body
    return base64.b64encode(hmac.new(secret_key.encode(), content, hashlib.sha1).digest()).decode()


def signed(fields: Mapping[str, str], body: bytes, credentials: Credentials) -> dict[str, str]:
    """The fields with access key, token and signature added."""
    complete = {**fields, ACCESS_KEY: credentials.access_key}
    if credentials.security_token:
        complete[SECURITY_TOKEN] = credentials.security_token
    complete[SIGNATURE] = signature(complete, body, credentials.secret_key)
    return complete
