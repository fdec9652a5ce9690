"""How a person writes a duration or a share, and how a duration and a count are shown: `55s`, `5%`, `2 ranges`."""

from connect_core.config.units import parse_seconds, parse_share, show_count, show_seconds

__all__ = ["parse_seconds", "parse_share", "show_count", "show_seconds"]
