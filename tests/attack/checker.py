"""What the stack has made of it, record by record: topics as RocketMQ's own Java client and admin tool see them, files
as they stand, receipts as the command prints them. Shares no code with the product.

A link is compared as two bags of records. What is missing is lost. What is there more often than in the source is
repeated: allowed as far as receipts tell, that is as far as what they say was delivered, was there already or is
duplicates exceeds the records of the source.
"""

from __future__ import annotations

import base64
import os
import re
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

READER = Path(__file__).parents[1] / "faults" / "kit" / "TopicReader.java"
_SILENT = '<configuration><root level="OFF"/></configuration>'
_LIMIT_S = 120
_SHOWN = 5


class Java:
    """RocketMQ's own client and admin tool, started with the Java and the jars of the broker that runs."""

    def __init__(self, broker: int, name_server: str, folder: Path) -> None:
        words = Path(f"/proc/{broker}/cmdline").read_text().split("\0")
        folder.mkdir(exist_ok=True)
        (folder / "logback.xml").write_text(_SILENT)
        quiet = f"-Drmq.logback.configurationFile={folder / 'logback.xml'}"
        self._java = [words[0], "-XX:TieredStopAtLevel=1", "-Xmx512m", f"-Duser.home={folder}", quiet]
        self._java += ["-cp", words[words.index("-cp") + 1]]
        self._name_server = name_server
        self._folder = folder

    def topics(self, *topics: str) -> list[dict[str, list[str]]]:
        """Of each topic the bodies of each queue, in the order of their offsets; none while it cannot be read."""
        done = self._run([str(READER), self._name_server], "".join(f"{topic}\n" for topic in topics))
        found: list[dict[str, list[str]]] = [{}]
        for line in done.stdout.splitlines():
            if line == "." or line.startswith("!"):
                found.append({})
                continue
            broker, queue, _, body = line.split(" ")
            found[-1].setdefault(f"{broker}/{queue}", []).append(base64.b64decode(body).decode())
        return [*found, *({} for _ in topics)][: len(topics)]

    def stored(self, topic: str) -> int:
        """How many messages of a topic the admin tool counts."""
        tool = ["org.apache.rocketmq.tools.command.MQAdminStartup", "topicStatus", "-n", self._name_server, "-t", topic]
        rows = [line.split() for line in self._run(tool, "").stdout.splitlines()]
        return sum(int(row[3]) - int(row[2]) for row in rows if len(row) > 3 and row[1].isdigit())

    def _run(self, words: Sequence[str], given: str) -> subprocess.CompletedProcess[str]:
        environment = {name: value for name, value in os.environ.items() if name != "JAVA_TOOL_OPTIONS"}
        return subprocess.run(
            [*self._java, *words], input=given, capture_output=True, text=True, timeout=_LIMIT_S, env=environment
        )


def lines_of(paths: Iterable[Path]) -> dict[str, list[str]]:
    """Whole lines; a part of one at the end is none yet."""
    return {path.name: path.read_text(errors="replace").split("\n")[:-1] for path in sorted(paths)}


@dataclass
class Link:
    """One connector: what its source has given, in the order of each source partition, and what its target holds.

    `unsure` are records that may be in the target or not: nobody knows whether the source has kept them.
    """

    name: str
    given: Mapping[str, Sequence[str]]
    there: Mapping[str, Sequence[str]]
    receipts: Sequence[Mapping[str, Any]]
    unsure: frozenset[str] = frozenset()
    lost: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    repeated: int = 0
    told: int = 0
    disorder: list[str] = field(default_factory=list)

    def compare(self) -> Link:
        given = Counter(one for part in self.given.values() for one in part)
        there = Counter(one for part in self.there.values() for one in part)
        self.lost = sorted((given - there).elements())
        self.foreign = sorted(one for one in there if one not in given and one not in self.unsure)
        known = Counter({one: given.get(one, 1) for one in there})
        self.repeated = (there - known).total()
        written = sum(
            _sum(receipt, "delivered", "deduplicated", "duplicates", "possible_duplicates") for receipt in self.receipts
        )
        self.told = max(written - (there & known).total(), 0)
        self.disorder = [*self._disorder()]
        return self

    def _disorder(self) -> Iterable[str]:
        """Records that came for the first time behind a later one of their source partition."""
        places = {
            one: (part, at) for part, records in self.given.items() for at, one in reversed([*enumerate(records)])
        }
        for target, records in self.there.items():
            last: dict[str, int] = {}
            for one in dict.fromkeys(records):
                part, at = places.get(one, ("", -1))
                if part and at < last.get(part, -1):
                    yield f"{target}: {one[:24]} of {part} behind its {last[part]}th"
                last[part] = max(at, last.get(part, -1))

    @property
    def faults(self) -> list[str]:
        found = []
        if self.lost:
            found.append(f"{len(self.lost)} lost: {_some(self.lost)}")
        if self.foreign:
            found.append(f"{len(self.foreign)} that nobody gave: {_some(self.foreign)}")
        if self.repeated > self.told:
            found.append(f"{self.repeated} repeated, and the receipts tell of {self.told}")
        if self.disorder:
            found.append(f"{len(self.disorder)} out of order: {'; '.join(self.disorder[:_SHOWN])}")
        return found

    def __str__(self) -> str:
        given = sum(map(len, self.given.values()))
        there = sum(map(len, self.there.values()))
        ends = f"lost {len(self.lost)}, repeated {self.repeated} (told {self.told})"
        return f"{self.name}: given {given}, there {there}, {ends}"


def _sum(receipt: Mapping[str, Any], *names: str) -> int:
    return sum(int(receipt.get(name) or 0) for name in names)


def _some(records: Sequence[str]) -> str:
    """Without padding, and no more than a few."""
    shown = [re.sub(r" x+$", "", one) for one in records]
    return ", ".join(shown[:_SHOWN]) + (f" … {shown[-1]}" if len(shown) > _SHOWN else "")
