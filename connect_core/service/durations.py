"""How a person writes a duration, and how one is shown: `55s`, `5m`."""

from connect_core.config.units import parse_seconds, show_seconds

__all__ = ["parse_seconds", "show_seconds"]
