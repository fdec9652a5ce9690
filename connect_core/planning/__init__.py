"""Planning: partitions -> tasks, bounds -> ranges, ranges -> lanes. Pure: no clock, no I/O,
the same input gives the same plan."""

from connect_core.planning.assigning import Assignment, Share, assigned
from connect_core.planning.lanes import followed, split_lanes
from connect_core.planning.ranges import Goal, RangeLimits, follow_ranges, plan_ranges, something

__all__ = [
    "Assignment",
    "Goal",
    "RangeLimits",
    "Share",
    "assigned",
    "follow_ranges",
    "followed",
    "plan_ranges",
    "something",
    "split_lanes",
]
