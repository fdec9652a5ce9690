"""Property strings: `name 0x01 value 0x02`, repeated, UTF-8; and which names mean something to RocketMQ.

A value may contain 0x01 but never 0x02; the last 0x02 may be missing. Pairs with an empty name or value are nothing, as
for Java readers. Of equal names the last wins, except for UNIQ_KEY, whose first is the message's own: brokers up to
5.3.3 append the sender's batch-level one behind it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from connect_core.errors import WireFormatError

KEYS = "KEYS"
TAGS = "TAGS"
UNIQUE_KEY = "UNIQ_KEY"
SHARDING_KEY = "__SHARDINGKEY"
BORN_TIMESTAMP = "BORN_TIMESTAMP"

_NAME_END, _PAIR_END = "\x01", "\x02"

# fmt: off
_CHANGE_THE_COPY = {  # its routing, visibility or storage
    "DELAY", "TRAN_MSG", "PGROUP", "__transactionId__", "TRAN_PREPARED_QUEUE_OFFSET", "TRANSACTION_CHECK_TIMES",
    "CHECK_IMMUNITY_TIME_IN_SECONDS", "REAL_TOPIC", "REAL_QID", "RETRY_TOPIC", "INNER_NUM", "INNER_BASE",
    "INNER_MULTI_DISPATCH", "INNER_MULTI_QUEUE_OFFSET", "POP_CK", "POP_CK_OFFSET", "1ST_POP_TIME",
    "PROPERTY_FORWARD_QUEUE_ID", "REDIRECT", "MSG_TYPE", "WAIT", "__CRC32#",
}
_TRUE_ELSEWHERE = {  # only in the cluster, or for the consumer, that they come from
    "MSG_REGION", "TRACE_ON", "CLUSTER", "MIN_OFFSET", "MAX_OFFSET", "RECONSUME_TIME", "MAX_RECONSUME_TIMES",
    "CONSUME_START_TIME", "ORIGIN_MESSAGE_ID", "DUP_INFO", "EXTEND_UNIQ_INFO", "TRANSFER_FLAG", "CORRECTION_FLAG",
    "MQ2_FLAG", "BUYER_ID", "ARRIVE_TIME", "PUSH_REPLY_TIME", "REPLY_TO_CLIENT", "TTL", "CORRELATION_ID",
    "INSTANCE_ID",
}
# fmt: on
DROPPED_IN_COPIES = frozenset(_CHANGE_THE_COPY | _TRUE_ELSEWHERE)
_DROPPED_PREFIXES = ("TIMER_", "__RMQ.TRANSIENT.")


def decode(encoded: bytes) -> dict[str, str]:
    """The properties in the order of their first appearance. Raises `WireFormatError` when not UTF-8."""
    try:
        text = encoded.decode()
    except UnicodeDecodeError as error:
        raise WireFormatError(f"Properties are not UTF-8 at byte {error.start} of {len(encoded)}") from None
    pairs = [pair.partition(_NAME_END) for pair in text.split(_PAIR_END)]
    decoded = {name: value for name, _, value in pairs if name and value}
    if text.count(UNIQUE_KEY) > 1 and UNIQUE_KEY in decoded:
        decoded[UNIQUE_KEY] = next(value for name, _, value in pairs if name == UNIQUE_KEY and value)
    return decoded


def value_of(encoded: bytes, name: str) -> str | None:
    """What `decode` gives for this name, without decoding the others: for scans that look for one property."""
    key = name.encode() + b"\x01"
    if encoded.count(key) != 1:
        return decode(encoded).get(name)
    begin = encoded.find(key)
    if begin and encoded[begin - 1] != 2:
        return None
    value = encoded[begin + len(key) :].partition(b"\x02")[0]
    try:
        return value.decode() or None
    except UnicodeDecodeError:
        raise WireFormatError(f"Property {name} is not UTF-8") from None


def encode(properties: Mapping[str, str] | Iterable[tuple[str, str]]) -> bytes:
    """The property string. Pairs with an empty name or value are left out, as every reader would.

    Raises ValueError when a name holds 0x01 or 0x02, or a value 0x02: such a pair would come back as something else.
    """
    pairs = properties.items() if isinstance(properties, Mapping) else properties
    text = "".join(_encode_pair(name, value) for name, value in pairs if name and value)
    return text.encode()


def _encode_pair(name: str, value: str) -> str:
    if _NAME_END in name or _PAIR_END in name or _PAIR_END in value:
        raise ValueError(f"Property {name!r:.60} contains a separator of the property string")
    return f"{name}{_NAME_END}{value}{_PAIR_END}"


def kept_in_copies(name: str) -> bool:
    """Whether a copy in another cluster, or written again to the same one, keeps this property."""
    return name not in DROPPED_IN_COPIES and not name.startswith(_DROPPED_PREFIXES)


def tag_hash(tag: str) -> int:
    """Java's 32-bit string hash, by which brokers filter tags."""
    result = 0
    units = tag.encode("utf-16-be")
    for index in range(0, len(units), 2):
        result = (31 * result + (units[index] << 8 | units[index + 1])) & 0xFFFFFFFF
    return result - (result >> 31 << 32)
