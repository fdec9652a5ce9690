"""What a run tells about itself: the named steps that it goes through."""

from connect_core.observe.steps import Step, reached

__all__ = ["Step", "reached"]
