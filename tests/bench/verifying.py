"""What it takes to verify what was delivered, beside what it took to deliver it: `waybill verify` reads the target
again and works out the digests of all receipts. Both with the start of their processes."""

from __future__ import annotations

import sys
import time
from itertools import count
from statistics import median

from tests.bench.copies import fill, forget
from tests.bench.measures import write_logs
from tests.bench.place import Place
from tests.bench.telling import Row

_SIZE = 1_000
_numbers = count(1)


def verifying(place: Place, records: int, repeats: int) -> list[Row]:
    topic = f"verified-{next(_numbers)}"
    fill(place, topic, records, _SIZE, 2)
    log, *_ = write_logs(place.folder / f"verified-{next(_numbers)}", records, 1)
    ways = {
        f"RocketMQ -> RocketMQ, {records:,} messages of {_SIZE:,} bytes": {
            "rocketmq": {"connection": "main", "topics": topic}
        },
        f"file -> RocketMQ, {records:,} lines": {"file": {"path": str(log)}},
    }
    rows = [_verified(place, what, source, records, repeats) for what, source in ways.items()]
    forget(place, topic)
    return rows


def _verified(place: Place, what: str, source: dict[str, object], records: int, repeats: int) -> Row:
    pairs = []
    for number in range(repeats + 1):
        name = f"verified-{next(_numbers)}"
        place.apply(name, source, {"rocketmq": {"connection": "main", "topic": name, "queues": 2}})
        copied_s = place.run(name).wall_s
        begun = time.monotonic()
        told = place.waybill("verify", name)
        pairs.append((time.monotonic() - begun, copied_s))
        assert (told["same"], told["records"]) == (told["ranges"], records), told
        forget(place, name)
        print(f"verify {what} {number}/{repeats}: {pairs[-1]}", file=sys.stderr, flush=True)
    pairs = pairs[1:]  # a fresh broker compiles its hot paths in the first
    verify_s, copy_s = (median(one) for one in zip(*pairs, strict=True))
    remark = f"ratio {median(copied / verified for verified, copied in pairs):.2f} to the copy"
    return Row(f"verify: {what}", f"{records / verify_s:,.0f}/s", f"the copy {records / copy_s:,.0f}/s", remark)
