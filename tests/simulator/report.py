"""What many histories came to, as a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tests.simulator.running import Result


def table(results: Sequence[Result], seconds: float) -> str:
    histories, times = Counter[str](), Counter[str]()
    for result in results:
        times.update(result.counts)
        histories.update(name for name, count in result.counts.items() if count)
    lines = [f"{'what happened':44} {'histories':>10} {'times':>10}"]
    lines += [f"{name:44} {histories[name]:>10,} {times[name]:>10,}" for name in sorted(times)]
    count = len(results)
    lines.append(
        f"{count:,} histories in {seconds:.0f} s ({1000 * seconds / count:.1f} ms each): "
        f"{sum(result.attempts for result in results) / count:.1f} runs and "
        f"{sum(result.virtual_s for result in results) / count:.1f} virtual seconds each; "
        f"{sum(1 for result in results if result.problems):,} broke a rule"
    )
    return "\n".join(lines)
