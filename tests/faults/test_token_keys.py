"""Masks that make tokens by a key, while a worker is killed and the key is another one (delivery rule 8)."""

from __future__ import annotations

import hashlib
import hmac
from pathlib import Path

import pytest

from connect_core.pipeline.key_ids import key_id_of
from tests.faults.copying import NAME, Copying
from tests.faults.kit.journeys import lines_of
from tests.faults.rows import FaultRow
from tests.site import Site

pytestmark = pytest.mark.fault

FIRST, SECOND = "the first key, of 2026", "the second key, of 2027"


def tokens(key: str, lines: list[bytes]) -> list[bytes]:
    return [b'{"text":"%s"}' % hmac.new(key.encode(), one, hashlib.sha256).hexdigest().encode() for one in lines]


def apply(copying: Copying, name: str, key: str) -> None:
    way = {"token": f"${{file:{copying.site.folder}/keys#{name}}}", "key_id": key_id_of(key)}
    copying.apply(limits={"range_records": 9_000}, parse={"format": "text"}, transforms=[{"mask": {"text": way}}])


def test_a_range_is_finished_with_the_key_that_it_was_begun_with(bare_site: Site, row: FaultRow) -> None:
    row.describe("worker killed, and the key replaced; then another key", where="file → file", database="SQLite")
    keys: Path = bare_site.folder / "keys"
    copying = Copying(bare_site)
    keys.write_text(f"a={FIRST}\n")
    apply(copying, "a", FIRST)
    copying.append(20_000)
    bare_site.fault("batch-written")
    copying.run(code=1)
    row.strikes()
    keys.write_text(f"a={SECOND}\n")
    before = copying.out.read_bytes()
    said = copying.run(code=2)
    assert f"The key of a mask has the id {key_id_of(SECOND)}, and the document means {key_id_of(FIRST)}" in said
    assert copying.out.read_bytes() == before
    keys.write_text(f"a={FIRST}\nb={SECOND}\n")
    apply(copying, "b", SECOND)
    copying.run()
    row.moves_again()
    expected = tokens(FIRST, copying.written[:9_000]) + tokens(SECOND, copying.written[9_000:])
    assert lines_of(copying.out) == expected
    assert [one.pins.revision for one in copying.receipts()] == [2, 3, 3]
    for secret in (FIRST, SECOND):
        assert secret not in bare_site.waybill("connectors", "show", NAME, "--json")
        assert secret.encode() not in (bare_site.home / "ledger.db").read_bytes()
    row.lost = row.repeated = row.reordered = row.duplicates = 0
