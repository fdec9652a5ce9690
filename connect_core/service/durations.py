"""How a person writes a duration or a share, and how a duration is shown: `55s`, `5%`."""

from connect_core.config.units import parse_seconds, parse_share, show_seconds

__all__ = ["parse_seconds", "parse_share", "show_seconds"]
