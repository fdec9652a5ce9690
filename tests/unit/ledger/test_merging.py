"""Two receipts of a live range become one. No database."""

from __future__ import annotations

from connect_core.ledger.live import merged
from connect_core.sdk.digest import LinesDigest
from tests.contract.ledger.samples import receipt

NOTHING = LinesDigest().text()


def test_what_was_set_aside_stays_in_the_merged_receipt() -> None:
    digests = {"digest_read": NOTHING, "digest_sent": NOTHING}
    first = receipt(0, 10, where={"/out.txt": [[0, 90]], "set_aside": [["/out.txt.unsettled-2", 7]]}, **digests)
    second = receipt(10, 20, where={"/out.txt": [[90, 180]]}, **digests)
    one = merged(first, second)
    assert one is not None
    assert one.where == {"/out.txt": [[0, 180]], "set_aside": [["/out.txt.unsettled-2", 7]]}
