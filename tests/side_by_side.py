"""Programs that work side by side until a test has seen enough."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event


@contextmanager
def side_by_side(program: Callable[[int, float, Event], None], count: int, seeded: random.Random) -> Iterator[None]:
    """Each is given its number, a seed, and what is set once the context is left. Raises what one of them raised."""
    stop = Event()
    with ThreadPoolExecutor(count) as pool:
        seeds = [seeded.random() for _ in range(count)]
        running = [pool.submit(program, number, seed, stop) for number, seed in enumerate(seeds)]
        try:
            yield
        finally:
            stop.set()
    for one in running:
        one.result()
