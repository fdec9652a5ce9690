"""A topic whose records become other records of one topic, each as it is: what is killed while steps work."""

from __future__ import annotations

from dataclasses import dataclass

from tests.faults.test_rules import Ruled


@dataclass
class OneTopic(Ruled):
    """One queue of a topic → one queue of another. Which steps, `parts` says."""

    def topics(self) -> list[str]:
        return [self.site.topic]

    def target(self) -> dict[str, list[bytes]]:
        return self.reader.records(self.site.topic)
