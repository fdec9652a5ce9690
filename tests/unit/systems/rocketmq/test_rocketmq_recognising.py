"""Many messages at once are recognised as each of them is."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_core.sdk.kits.log_marks import Elsewhere, Mark
from connect_core.sdk.records import Lineage
from connect_core.sdk.testing.driving import records
from connect_core.systems.rocketmq.columns import columns_of_messages
from connect_core.systems.rocketmq.marking import MessageMarker, MessageRecogniser, Torn
from connect_core.systems.rocketmq.recognising import FEW, ColumnRecogniser, Marks, _alike
from tests.unit.systems.rocketmq.test_rocketmq_decoding import stored

OURS, OTHER = (Lineage("0123abcd", "live", name, 0) for name in ("partition", "elsewhere"))
STRANGE = Lineage("0123abcd", "replay-1", "partition", 0)
"""Of the same connector, and nobody looks for it."""
LATER = OURS._replace(incarnation=1)
FOREIGN = b"KEYS\x01k\x02"


def strings(lineage: Lineage, first: int, count: int, **columns: list[object]) -> list[bytes]:
    rows = records([b"x"] * count, first, **columns)
    made: list[bytes] = MessageMarker(lineage).by_column(rows).to_pylist()
    return made


def one_by_one(properties: Sequence[bytes]) -> list[Mark | Elsewhere | Torn]:
    messages = [stored(100 + n, b"x", text) for n, text in enumerate(properties)]
    return list(MessageRecogniser([OURS, OTHER]).read(messages))


def together(properties: Sequence[bytes]) -> list[Mark | Elsewhere | Torn]:
    columns = columns_of_messages([stored(100 + n, b"x", text) for n, text in enumerate(properties)])
    seen: list[Mark | Elsewhere | Torn] = []
    for found in ColumnRecogniser([OURS, OTHER]).read(columns):
        if isinstance(found, Marks):
            seen += [Marks(found.lineage, found.rows[n : n + 1]).last() for n in range(len(found.rows))]
        else:
            seen.append(found)
    return seen


def takes_the_fast_way(properties: Sequence[bytes]) -> bool:
    columns = columns_of_messages([stored(n, b"x", text) for n, text in enumerate(properties)])
    return _alike(columns.properties, MessageRecogniser([OURS, OTHER]).needle) is not None


N = 3 * FEW
ALIKE = {
    "one lane's": strings(OURS, 1000, N),
    "keys of any length": strings(OURS, 1000, N, key=[str(n) for n in range(N)]),
    "behind it what a broker adds": [text + b"CLUSTER\x01DefaultCluster\x02" for text in strings(OURS, 1000, N)],
    "another stream's": strings(STRANGE, 1000, N),
    "a later incarnation's": strings(LATER, 1000, N),
    "what has a name": strings(OURS._replace(origin="uIRDT3zr"), 1000, N),
    "times": strings(OURS, 1000, N, timestamp=[1_700_000_000_000 + n for n in range(N)]),
}
OTHERWISE = {
    "another digit": strings(OURS, 10_000 - FEW, N),
    "two partitions'": [*strings(OURS, 1000, FEW), *strings(OTHER, 2000, FEW), *strings(OURS, 1000 + FEW, FEW)],
    "others between": [text for n, one in enumerate(strings(OURS, 1000, N)) for text in ([one, FOREIGN][: 1 + n % 2])],
    "a later incarnation's between": [*strings(OURS, 1000, FEW), *strings(LATER, 0, 9), *strings(OTHER, 2000, FEW)],
    "others first": [FOREIGN, *strings(OURS, 1000, N)],
    "one torn": [*strings(OURS, 1000, N), strings(OURS, 1000 + N, 1)[0][:-3] + b"\0\0\0"],
    "one torn in its middle": [*strings(OURS, 1000, FEW), b"\0" * 90, *strings(OURS, 1000 + FEW, FEW)],
    "with traces": strings(OURS, 1000, N, trace=list(range(1, N + 1))),
    "several outputs": strings(OURS, 1000, N, ordinal=[n % 2 for n in range(N)], outputs=[2] * N),
    "without any": [b""] * N,
    "two marks in each, of which the last counts": [
        first + second for first, second in zip(strings(OTHER, 5000, N), strings(OURS, 1000, N), strict=True)
    ],
    "a later mark in one": [*strings(OURS, 1000, N - 1), strings(OURS, 1000, 1)[0] + strings(OTHER, 7777, 1)[0]],
    "few": strings(OURS, 1000, FEW - 1),
}


@pytest.mark.parametrize("kind", [*ALIKE, *OTHERWISE])
def test_it_is_what_is_seen_one_by_one(kind: str) -> None:
    properties = (ALIKE | OTHERWISE)[kind]
    assert together(properties) == one_by_one(properties)


@pytest.mark.parametrize("kind", ALIKE)
def test_what_is_alike_is_read_at_once(kind: str) -> None:
    assert takes_the_fast_way(ALIKE[kind])


PIECES = st.lists(
    st.one_of(
        st.builds(
            strings, st.sampled_from([OURS, OTHER, STRANGE, LATER]), st.integers(0, 10**12), st.integers(1, 2 * FEW)
        ),
        st.just([FOREIGN]),
        st.just([b""]),
        st.builds(
            lambda text, n: [text[: max(len(text) - n, 0)] + b"\0" * n], st.just(ALIKE["times"][0]), st.integers(1, 99)
        ),
    ),
    max_size=5,
)


@given(PIECES, st.integers(0, 3))
def test_whatever_stands_there_it_is_what_is_seen_one_by_one(pieces: list[list[bytes]], cut: int) -> None:
    properties = [text for piece in pieces for text in piece][cut:]
    assert together(properties) == one_by_one(properties)
