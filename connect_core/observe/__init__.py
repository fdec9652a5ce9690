"""What a run tells about itself: the named steps that it goes through, and metrics of them."""

from connect_core.observe.metrics import Passed, write_metrics
from connect_core.observe.steps import Step, reached

__all__ = ["Passed", "Step", "reached", "write_metrics"]
