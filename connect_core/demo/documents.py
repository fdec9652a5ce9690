"""The two connectors of one demo under fresh names: logs to a topic, the topic to a file; and where their files are.

Writes documents and folders below `demo/` of the home and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

HOSTS = ("web-1", "web-2", "web-3")
EVERY = "5s"


@dataclass(frozen=True)
class Names:
    """`folder` is the demo's own work folder; `root` the folder of the home, from which documents name files."""

    root: Path
    folder: Path
    topic: str

    @classmethod
    def fresh(cls, home: Path) -> Names:
        """The first number that no demo of this home has used; makes its folder."""
        number = 1
        while True:
            folder = home / "demo" / str(number)
            try:
                folder.mkdir(parents=True)
            except FileExistsError:
                number += 1
            else:
                return cls(home.parent, folder, f"demo-{number}")

    @property
    def inward(self) -> str:
        return f"{self.topic}-in"

    @property
    def outward(self) -> str:
        return f"{self.topic}-out"

    @property
    def logs(self) -> Path:
        return self.folder / "logs"

    @property
    def target(self) -> Path:
        return self.folder / "copy.log"

    @property
    def first_half(self) -> Path:
        """Where the backfill writes what came first."""
        return self.folder / "first-half.log"

    def write_documents(self) -> list[str]:
        """Paths of both documents, from the root."""
        return [self._write(document) for document in (self._inward(), self._outward())]

    def _inward(self) -> dict[str, Any]:
        return {
            "version": 1,
            "name": self.inward,
            "description": "log files of the demo to a topic with a queue for each",
            "source": {"file": {"path": self._from_root(self.logs / "*.log")}},
            "sink": {"rocketmq": {"connection": "main", "topic": self.topic, "queues": len(HOSTS)}},
            "schedule": {"every": EVERY},
        }

    def _outward(self) -> dict[str, Any]:
        return {
            "version": 1,
            "name": self.outward,
            "description": "the topic of the demo to one file",
            "source": {"rocketmq": {"connection": "main", "topics": self.topic}},
            "sink": {"file": {"path": self._from_root(self.target)}},
            "schedule": {"every": EVERY},
        }

    def _write(self, document: dict[str, Any]) -> str:
        path = self.folder / f"{document['name']}.yaml"
        path.write_text(yaml.safe_dump(document, sort_keys=False))
        return self._from_root(path)

    def _from_root(self, path: Path) -> str:
        return str(path.relative_to(self.root))
