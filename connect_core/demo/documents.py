"""The four connectors of one demo under fresh names: logs to a topic and on to a file, devices to a topic and on to
another MQTT topic; a fifth one for payments; two more for a table; and where their files are.

Writes documents and folders below `demo/` of the home and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from connect_core.demo import orders

HOSTS = ("web-1", "web-2", "web-3")
_EVERY, _WINDOW = "10s", "8s"
_LOCAL_BROKER = {"host": "127.0.0.1", "port": "${stack:mqtt_port}"}


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
    def connectors(self) -> tuple[str, ...]:
        return self.inward, self.outward, self.devices_in, self.devices_out

    @property
    def devices_in(self) -> str:
        return f"{self.topic}-devices-in"

    @property
    def devices_out(self) -> str:
        return f"{self.topic}-devices-out"

    @property
    def device_topic(self) -> str:
        """Of RocketMQ, between the two."""
        return f"{self.topic}-devices"

    @property
    def said(self) -> str:
        """The first part of the MQTT topics to which devices publish."""
        return f"{self.topic}/said"

    @property
    def heard(self) -> str:
        """Of those to which it is published again."""
        return f"{self.topic}/heard"

    @property
    def payments(self) -> str:
        """A connector, and its topic."""
        return f"{self.topic}-payments"

    @property
    def payment_lines(self) -> Path:
        return self.folder / "payments.jsonl"

    @property
    def orders(self) -> str:
        """A topic, and what the names of its two connectors begin with."""
        return f"{self.topic}-orders"

    @property
    def orders_in(self) -> str:
        return f"{self.orders}-in"

    @property
    def orders_out(self) -> str:
        return f"{self.orders}-out"

    @property
    def database(self) -> str:
        """Of the tables of orders."""
        return self.topic.replace("-", "_")

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
        """Their paths, from the root."""
        documents = (self._inward(), self._outward(), self._devices_in(), self._devices_out())
        return [self._write(document) for document in documents]

    def write_payments(self, amount: str) -> str:
        """The path of the document in which amounts have this type."""
        return self._write(
            {
                "version": 1,
                "name": self.payments,
                "description": "payments of the demo to a topic, with their cards masked",
                "source": {"file": {"path": self._from_root(self.payment_lines)}},
                "parse": {"format": "json", "fields": {"id": "int64", "amount": amount, "card": "text"}},
                "transforms": [{"mask": {"card": "redact"}}],
                "sink": {"rocketmq": {"connection": "main", "topic": self.payments, "queues": 1}},
                "errors": {"tolerance": "all"},
            }
        )

    def write_orders(self, socket_folder: str) -> list[str]:
        """The paths of two documents: changes of a table to a topic, and on to another table."""
        database = {"host": socket_folder, "user": "postgres", "database": self.database}
        inward = {
            "version": 1,
            "name": self.orders_in,
            "description": "changes of a table of the demo, and the rows that were there, to a topic",
            "source": {"postgresql_changes": {**database, "tables": [orders.SOURCE]}},
            "sink": {"rocketmq": {"connection": "main", "topic": self.orders, "queues": 2}},
            "schedule": {"manual": True},
        }
        outward = {
            "version": 1,
            "name": self.orders_out,
            "description": "the topic of these changes to another table",
            "source": {"rocketmq": {"connection": "main", "topics": self.orders}},
            "parse": {"format": "debezium", "fields": dict(orders.FIELDS)},
            "sink": {"postgresql": {**database, "table": orders.TARGET, "mode": "upsert"}},
            "schedule": {"manual": True},
        }
        return [self._write(inward), self._write(outward)]

    def _inward(self) -> dict[str, Any]:
        return {
            "version": 1,
            "name": self.inward,
            "description": "log files of the demo to a topic with a queue for each",
            "source": {"file": {"path": self._from_root(self.logs / "*.log")}},
            "sink": {"rocketmq": {"connection": "main", "topic": self.topic, "queues": len(HOSTS)}},
            "schedule": {"every": _EVERY},
        }

    def _outward(self) -> dict[str, Any]:
        return {
            "version": 1,
            "name": self.outward,
            "description": "the topic of the demo to one file",
            "source": {"rocketmq": {"connection": "main", "topics": self.topic}},
            "sink": {"file": {"path": self._from_root(self.target)}},
            "schedule": {"every": _EVERY},
        }

    def _devices_in(self) -> dict[str, Any]:
        return {
            "version": 1,
            "name": self.devices_in,
            "description": "what the devices of the demo publish, to a topic",
            "source": {"mqtt": {**_LOCAL_BROKER, "filters": [f"{self.said}/#"]}},
            "sink": {"rocketmq": {"connection": "main", "topic": self.device_topic, "queues": 1}},
            "schedule": {"every": _EVERY, "window": _WINDOW},
        }

    def _devices_out(self) -> dict[str, Any]:
        return {
            "version": 1,
            "name": self.devices_out,
            "description": "the topic of the demo's devices, published again",
            "source": {"rocketmq": {"connection": "main", "topics": self.device_topic}},
            "sink": {"mqtt": {**_LOCAL_BROKER, "topic": f"{self.heard}/{{key}}"}},
            "schedule": {"every": _EVERY},
        }

    def _write(self, document: dict[str, Any]) -> str:
        path = self.folder / f"{document['name']}.yaml"
        path.write_text(yaml.safe_dump(document, sort_keys=False))
        return self._from_root(path)

    def _from_root(self, path: Path) -> str:
        return str(path.relative_to(self.root))
