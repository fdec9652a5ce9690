"""What the demo shows: numbered steps with their times, plain sentences, tables and the commands to paste."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich import box
from rich.console import Console
from rich.table import Table

_WIDTH_OF_A_FILE = 120


class Screen:
    """One demo's output; `seconds` since it began."""

    def __init__(self, steps: int) -> None:
        self.console = Console(highlight=False, soft_wrap=True)
        if not self.console.is_terminal:
            self.console.width = _WIDTH_OF_A_FILE
        self._steps, self._step, self._begun = steps, 0, time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._begun

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        self._step += 1
        begun = time.monotonic()
        self.console.print(f"\n[bold]{self._step}/{self._steps} {title}[/bold]")
        yield
        self.say(f"[dim]({time.monotonic() - begun:.1f} s)[/dim]")

    def say(self, sentence: str) -> None:
        self.console.print(f"  {sentence}")

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        shown = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for name in columns:
            shown.add_column(name, overflow="fold")
        for row in rows:
            shown.add_row(*row)
        self.console.print(shown)

    def paste(self, title: str, commands: Sequence[str]) -> None:
        """Commands on lines of their own, in plain text: what is copied is what works."""
        self.console.print(f"\n{title}\n")
        for command in commands:
            self.console.out(f"  {command}")
