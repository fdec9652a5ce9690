"""What the demo compares at its end: both sides and the receipts between them, shown as tables, faults in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from connect_core.demo.account import Account
from connect_core.demo.comparison import Comparison, compare, compare_beginnings
from connect_core.demo.devices import Devices, Listener, difference, sha256_of
from connect_core.demo.feed import Feed
from connect_core.demo.orders import ROWS, Seen
from connect_core.demo.screen import Screen


def on_lines(
    screen: Screen, feed: Feed, target: Path, messages: int, inward: Account, outward: Account
) -> Sequence[str]:
    """Logs -> topic (`inward`), which has so many `messages`, -> the file `target` (`outward`)."""
    seen, fed = compare(feed.files, target), feed.total
    screen.table(("", "logs -> topic", "topic -> file"), _rows(seen, inward, outward, messages, fed))
    screen.say(f"SHA-256, lines sorted   of the logs {seen.source_sha256}")
    screen.say(f"                       of the file {seen.target_sha256}")
    faults = [*seen.faults, *inward.faults, *outward.faults, *_differences(seen, inward, outward, messages, fed)]
    log_bytes = sum(path.stat().st_size for path in feed.files)
    if sum(inward.ends.values()) != log_bytes:
        faults.append(f"receipts cover {sum(inward.ends.values())} of {log_bytes} bytes of the logs")
    return faults


def on_backfill(screen: Screen, feed: Feed, target: Path, moved: int) -> Sequence[str]:
    """The first lines of the logs -> the file `target`; its receipts tell of so many records `moved`."""
    half = compare_beginnings(feed.files, target)
    screen.say(f"The backfill's file has the first {half.lines:,} lines of the logs, each once and in order.")
    if half.lines == moved:
        return half.faults
    return [*half.faults, f"the backfill's receipts count {moved} records, its file has {half.lines} lines"]


def on_devices(
    screen: Screen, devices: Devices, listener: Listener, messages: int, inward: Account, outward: Account
) -> Sequence[str]:
    """Devices -> topic (`inward`), which has so many `messages`, -> another MQTT topic (`outward`)."""
    told = inward.possible_duplicates + outward.possible_duplicates
    said, heard = devices.said, listener.heard
    rows = [
        ("given", f"{len(said):,} messages", f"{messages:,} messages"),
        ("arrived", f"{messages:,} messages", f"{len(heard):,} messages"),
        ("repeated", f"{messages - len(said)}", f"{len(heard) - len(set(heard))}"),
        ("  reported as possible", f"{inward.possible_duplicates}", f"{outward.possible_duplicates}"),
        ("receipts", f"{inward.receipts}", f"{outward.receipts}"),
        ("  identities", _hold(inward), _hold(outward)),
    ]
    screen.table(("", "devices -> topic", "topic -> MQTT"), rows)
    screen.say(f"SHA-256, each message once, sorted   of what devices said {sha256_of(said)}")
    screen.say(f"                                     of what was heard    {sha256_of(set(heard))}")
    return [*difference(said, heard, told), *inward.faults, *outward.faults]


def on_orders(
    screen: Screen, source: Seen, target: Seen, changes: int, messages: int, inward: Account, outward: Account
) -> Sequence[str]:
    """A table whose rows were changed so many times -> topic (`inward`), which has so many `messages` -> another table
    (`outward`)."""
    rows = [
        ("given", f"{ROWS:,} rows, {changes:,} changes", f"{messages:,} messages"),
        ("arrived", f"{messages:,} messages", f"{target.rows:,} rows"),
        ("receipts", f"{inward.receipts}", f"{outward.receipts}"),
        ("  delivered", f"{inward.delivered:,}", f"{outward.delivered:,}"),
        ("  + already in the target", f"{inward.deduplicated:,}", f"{outward.deduplicated:,}"),
        ("  identities", _hold(inward), _hold(outward)),
    ]
    screen.table(("", "table -> topic", "topic -> table"), rows)
    screen.say(f"SHA-256, rows by their key   of the table {source.sha256}, {source.rows:,} rows")
    screen.say(f"                             of its copy  {target.sha256}")
    faults = [] if source == target else [f"the table has {source.rows} rows, its copy {target.rows}, and they differ"]
    if messages != inward.delivered + inward.deduplicated:
        faults.append(
            f"receipts count {inward.delivered + inward.deduplicated} changes, the topic has {messages} messages"
        )
    return [*faults, *inward.faults, *outward.faults]


def _rows(seen: Comparison, inward: Account, outward: Account, messages: int, fed: int) -> list[tuple[str, str, str]]:
    return [
        ("given", f"{fed:,} lines", f"{messages:,} messages"),
        ("arrived", f"{messages:,} messages", f"{seen.target_lines:,} lines"),
        ("order within each log", "", "differs" if seen.faults else "the same"),
        ("receipts", f"{inward.receipts}", f"{outward.receipts}"),
        ("  read", f"{inward.read:,}", f"{outward.read:,}"),
        ("  = delivered", f"{inward.delivered:,}", f"{outward.delivered:,}"),
        ("  + already in the target", f"{inward.deduplicated:,}", f"{outward.deduplicated:,}"),
        ("  duplicates", f"{inward.duplicates:,}", f"{outward.duplicates:,}"),
        ("  identities", _hold(inward), _hold(outward)),
    ]


def _differences(seen: Comparison, inward: Account, outward: Account, messages: int, fed: int) -> list[str]:
    figures = {
        "lines fed": fed,
        "lines in the logs": seen.source_lines,
        "messages in the topic": messages,
        "lines in the file": seen.target_lines,
        "records read from the logs": inward.read,
        "records read from the topic": outward.read,
    }
    faults = [] if len(set(figures.values())) == 1 else [f"{name}: {value}" for name, value in figures.items()]
    if inward.possible_duplicates or outward.possible_duplicates:
        faults.append("receipts count possible duplicates")
    if seen.source_sha256 != seen.target_sha256:
        faults.append("the SHA-256 of the sorted lines differ")
    return faults


def _hold(account: Account) -> str:
    return "do not hold" if account.faults else "all hold"
