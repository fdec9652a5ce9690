from __future__ import annotations

from connect_core.rocketmq.wire.signing import Credentials, signature, signed


def test_vectors() -> None:
    fields = {"AccessKey": "ak", "queueId": "0", "topic": "t"}
    assert signature(fields, b"", "sk") == "H0GNZ2iJMP1h9KNhB8fi1mFflAI="
    assert signature({**fields, "a": "x"}, b"BODY", "sk") == "fFfsnmVEYA/INCWqa2UGnE0H4dI="


def test_signing_adds_key_and_signature_and_nothing_else() -> None:
    fields = signed({"topic": "t", "queueId": "0"}, b"", Credentials("ak", "sk"))
    assert fields == {"topic": "t", "queueId": "0", "AccessKey": "ak", "Signature": "H0GNZ2iJMP1h9KNhB8fi1mFflAI="}


def test_token_is_sent_and_covered() -> None:
    without = signed({"topic": "t"}, b"", Credentials("ak", "sk"))
    with_token = signed({"topic": "t"}, b"", Credentials("ak", "sk", "token"))
    assert with_token["SecurityToken"] == "token"
    assert with_token["Signature"] != without["Signature"]


def test_an_old_signature_is_not_covered() -> None:
    assert signature({"a": "1", "Signature": "old"}, b"", "sk") == signature({"a": "1"}, b"", "sk")


def test_secrets_are_not_printed() -> None:
    assert "hidden" not in repr(Credentials("ak", "hidden", "hidden"))
