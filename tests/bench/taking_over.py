"""Taking over what an attempt has delivered whose receipt was lost: every record is looked for in the target, read once
more in the source, and settled. Beside it, on the same lines, the delivering of them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from itertools import count
from statistics import median
from typing import Any

from connect_core.rocketmq import Client, ClientOptions
from tests.bench.measures import write_logs
from tests.bench.place import Place, Timed
from tests.bench.telling import Row

QUEUES = 2
_ONE_QUANTUM = {
    "WAYBILL_QUANTUM_S": "100s",
    "WAYBILL_LEASE_TTL_S": "150s",
    "WAYBILL_LEASE_MARGIN_S": "20s",
    "WAYBILL_TESTING": "1",
}
"""All that there is goes in one, so that all of it is lost."""
_numbers = count(1)


def taking_over(place: Place, lines: int, repeats: int) -> list[Row]:
    """Of a fifth of the lines, so that what takes the same time for any number is seen, and of all."""
    return [_measured(place, records, repeats) for records in (lines // 5, lines)]


def _measured(place: Place, records: int, repeats: int) -> Row:
    logs = place.folder / f"lost-{next(_numbers)}"
    write_logs(logs, records, QUEUES)
    source: dict[str, Any] = {"file": {"path": str(logs / "*.log")}}
    pairs = [_pair(place, source, records) for _ in range(repeats + 1)][1:]  # the first one warms the broker up
    rate = records / median(found.run_s for _, found in pairs)
    looked = records / median(found.parts["scan"] for _, found in pairs)
    delivering = records / median(delivered.run_s for delivered, _ in pairs)
    ratio = median(delivered.run_s / found.run_s for delivered, found in pairs)
    memory = max(found.worker_bytes for _, found in pairs) >> 20
    what = f"file -> RocketMQ, {QUEUES} files, {records:,} lines of 200 bytes: taken over after a lost receipt"
    remark = f"ratio {ratio:.2f} of delivering; looking alone {looked:,.0f}/s; a worker has {memory} MiB at most"
    return Row(what, f"{rate:,.0f}/s", f"delivering {delivering:,.0f}/s", remark)


def _pair(place: Place, source: Mapping[str, Any], records: int) -> tuple[Timed, Timed]:
    """Delivering all of it, and taking over what another connector had delivered when it was killed."""
    delivered = place.run(_applied(place, source), watched=True)
    lost = _applied(place, source)
    place.run_killed(lost, "executed", _ONE_QUANTUM)
    found = place.run(lost, watched=True)
    with Client(ClientOptions(name_servers=tuple(place.name_servers.split(";")))) as client:
        there = sum(seen.end - seen.begin for seen in client.offsets.bounds(lost).values())
    if there != records:
        raise SystemExit(f"{there} records are in {lost}, {records} were given")
    print(f"{records:,}: {delivered.parts}, taken over {found.parts}", file=sys.stderr, flush=True)
    return delivered, found


def _applied(place: Place, source: Mapping[str, Any]) -> str:
    name = f"over-{next(_numbers)}"
    place.apply(name, dict(source), {"rocketmq": {"connection": "main", "topic": name, "queues": QUEUES}})
    return name
