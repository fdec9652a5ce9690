"""Levels of a topic, as MQTT has them: between slashes, counted from 1. Pure."""

from __future__ import annotations


def levels_of(topic: str, level: int, *, onward: bool = False) -> str | None:
    """One level, or all from there on; None where the topic has fewer."""
    parts = topic.split("/", level) if onward else topic.split("/")
    if len(parts) < level:
        return None
    return "/".join(parts[level - 1 :]) if onward else parts[level - 1]
