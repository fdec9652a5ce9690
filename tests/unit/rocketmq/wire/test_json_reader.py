from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_core.errors import WireFormatError
from connect_core.rocketmq.wire.json_reader import Pairs, read

DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(DOCUMENTS)
def test_standard_json(document: Any) -> None:
    assert read(json.dumps(document).encode()) == document


@given(DOCUMENTS)
def test_standard_json_inside_a_document_that_is_not(document: Any) -> None:
    text = f'{{0: {json.dumps(document)} ,"k":{json.dumps(document, ensure_ascii=False)}}}'
    assert read(text.encode()) == {"0": document, "k": document}


def test_unquoted_integer_keys() -> None:
    assert read(b'{"brokerAddrs":{0:"127.0.0.1:10911",-1:null}}') == {
        "brokerAddrs": {"0": "127.0.0.1:10911", "-1": None}
    }


def test_objects_as_keys() -> None:
    document = read(b'{"t":{{"q":0,"n":{1:2}}:{"o":5},{"q":1}:[true,1.5e3]}}')
    assert document == {"t": Pairs([({"q": 0, "n": {"1": 2}}, {"o": 5}), ({"q": 1}, [True, 1500.0])])}
    assert isinstance(document["t"], Pairs)


def test_empty_table_is_a_plain_object() -> None:
    assert read(b'{"offsetTable":{},0:1}') == {"offsetTable": {}, "0": 1}


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"{0:1",
        b"{0:1,}",
        b"{0 1}",
        b"{0:}",
        b"{,}",
        b"[0:1]",
        b"{0:1}x",
        b'{0:"a',
        b'{0:"\\x"}',
        b"{a:1}",
        b"{0:nul}",
        b"{0:.5}",
        b"\xff",
        b"{0:" * 100,
        b"[" * 100_000,
        b"{" * 100_000,
        b"{0:" + b"9" * 5000 + b"}",
    ],
)
def test_nonsense(text: bytes) -> None:
    with pytest.raises(WireFormatError):
        read(text)


def test_the_position_is_told() -> None:
    with pytest.raises(WireFormatError, match="expected : at 3"):
        read(b"{0 1}")
