"""Receipts added up: what a connector has moved, and whether its receipts are sound and leave nothing out. Pure.

Takes receipts as `waybill receipts NAME --json` prints them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Receipt = Mapping[str, Any]


@dataclass(frozen=True)
class Account:
    """Sums over receipts. `ends` are where each partition got to; `faults` says which identities do not hold."""

    receipts: int
    read: int
    delivered: int
    deduplicated: int
    duplicates: int
    possible_duplicates: int
    ends: Mapping[str, int]
    faults: tuple[str, ...]


def add_up(receipts: Sequence[Receipt]) -> Account:
    by_partition: dict[str, list[Receipt]] = defaultdict(list)
    for receipt in receipts:
        by_partition[receipt["partition"]].append(receipt)
    faults = [fault for receipt in receipts for fault in _identity_faults(receipt)]
    for partition, chain in by_partition.items():
        faults += _chain_faults(partition, sorted(chain, key=lambda one: (int(one["begin"]), int(one["end"]))))
    return Account(
        receipts=len(receipts),
        read=_sum(receipts, "read"),
        delivered=_sum(receipts, "delivered"),
        deduplicated=_sum(receipts, "deduplicated"),
        duplicates=_sum(receipts, "duplicates"),
        possible_duplicates=_sum(receipts, "possible_duplicates"),
        ends={partition: max(int(receipt["end"]) for receipt in chain) for partition, chain in by_partition.items()},
        faults=tuple(faults),
    )


def _identity_faults(receipt: Receipt) -> list[str]:
    where = f"{receipt['partition']} from {receipt['begin']}"
    faults = []
    known = receipt["read"] is not None  # not where the target alone could tell what an attempt had done
    if known and receipt["read"] != receipt["filtered"] + receipt["rejected"] + receipt["passed"]:
        faults.append(f"{where}: read is not filtered + rejected + passed")
    if receipt["emitted"] != receipt["delivered"] + receipt["deduplicated"]:
        faults.append(f"{where}: emitted is not delivered + deduplicated")
    covered, length = receipt["covered"], int(receipt["end"]) - int(receipt["begin"])
    if covered is not None and covered != length:
        faults.append(f"{where}: {covered} positions are accounted for, not {length}")
    if receipt["duplicates"]:
        faults.append(f"{where}: {receipt['duplicates']} duplicates")
    return faults


def _chain_faults(partition: str, chain: Sequence[Receipt]) -> list[str]:
    """Every range must begin where the one before it ended, the first one at 0."""
    begins = [int(receipt["begin"]) for receipt in chain]
    ends = [0, *(int(receipt["end"]) for receipt in chain)]
    return [
        f"{partition}: a range begins at {begin}, the one before it ended at {end}"
        for begin, end in zip(begins, ends, strict=False)
        if begin != end
    ]


def _sum(receipts: Sequence[Receipt], name: str) -> int:
    """What is not known counts as nothing."""
    return sum(int(receipt[name] or 0) for receipt in receipts)
