"""Whether the two ends of a connector go together, and when it runs with its source: what their plugins say."""

from __future__ import annotations

from typing import Any

from connect_core.config import option_models
from connect_core.config.endpoints import End
from connect_core.config.units import parse_seconds, show_seconds
from connect_core.sdk.plugin import Conflict

NO_LASTING_OFFSETS = "tells records by their offsets, and its source pushes: that has none that stay the same"
ANOTHER_WAY = "Choose another sink, or move the records into a log or a file first, and from there into this sink"


def conflict(source: End, sink: End) -> Conflict | None:
    """What is wrong between two ends that are sound by themselves; None for ends that fit."""
    ends = source.configured(), sink.configured()
    if "pushes" in ends[0].plugin.abilities and "by_offset" in ends[1].plugin.abilities:
        return Conflict(("sink", sink.system), f"{NO_LASTING_OFFSETS} ({source.system}). {ANOTHER_WAY}")
    plugins = {end.name: end.plugin for end in ends}
    return next((wrong for plugin in plugins.values() if (wrong := plugin.conflict(*ends))), None)


def schedule_conflict(source: End, schedule: Any) -> Conflict | None:
    """What is wrong with when a connector runs; None where nothing is. Its source need not be sound."""
    plugin = option_models.plugin(source.system)
    if plugin is None or not isinstance(schedule, dict):
        return None
    if schedule.get("on_change") and plugin.unwatchable:
        return Conflict(("schedule", "on_change"), f"{plugin.unwatchable}: use every, with a window")
    expiry, every_s = plugin.expiry(source.options), _seconds(schedule.get("every"))
    if expiry and every_s >= expiry.seconds:
        words = f"{expiry.drops} after {expiry.option} ({show_seconds(expiry.seconds)}), before the next run"
        return Conflict(("schedule", "every"), f"{words}, {show_seconds(every_s)} later")
    return None


def verification_conflict(sink: End, verify: Any) -> Conflict | None:
    """A target that cannot be read again cannot be verified."""
    plugin = option_models.plugin(sink.system)
    if plugin is None or not verify or "rereads" in plugin.abilities:
        return None
    return Conflict(("verify",), f"a target of {plugin.title} cannot be read again: leave verify out")


def _seconds(written: Any) -> float:
    """0 for what is no span of time: that is told by who judges the schedule by itself."""
    try:
        return parse_seconds(written)
    except ValueError:
        return 0.0
