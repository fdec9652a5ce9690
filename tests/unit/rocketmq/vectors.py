"""Byte vectors that were observed on a running 5.3.3 server, and the golden exchanges recorded in `golden/`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

JSON_REQUEST_HEADER = (
    b'{"code":30,"language":"PYTHON","version":453,"opaque":1,"flag":0,"extFields":{"topic":"t","queueId":"0"}}'
)
JSON_REQUEST = bytes.fromhex("0000006d00000069") + JSON_REQUEST_HEADER
BINARY_REQUEST = bytes.fromhex(
    "000000330100002f001e0301c50000000100000000000000000000001a0005746f70696300000001740007717565756549640000000130"
)
BATCH_ENTRY = bytes.fromhex("0000001f000000000000000000000005000000026869000754414753016102")
STORED_MESSAGE = bytes.fromhex(
    "00000072daa320a70a140ae70000000000000007000000000000000100000000000001020000000000000000000004d27f0000010000e610"
    "000001a1fd2079167f000001000051af000000000000000000000000000000067631626f6479027431000f554e49515f4b4559014d594b45"
    "5902"
)


@dataclass(frozen=True)
class Exchange:
    """One recorded request and its answer, as frames."""

    name: str
    server: str
    command: str
    request: bytes
    reply: bytes


def _load(path: Path) -> Exchange:
    document = json.loads(path.read_text())
    return Exchange(
        path.stem,
        document["server"],
        document["command"],
        bytes.fromhex(document["request"]),
        bytes.fromhex(document["reply"]),
    )


EXCHANGES = {
    exchange.name: exchange for exchange in map(_load, sorted((Path(__file__).parent / "golden").glob("*.json")))
}
SERVERS = ("5.3.3", "5.5.0", "5.5.0-binary")
