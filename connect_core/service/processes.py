"""What a process of a scheduler needs before it loads anything else."""

from connect_core.engine.parent import die_with

__all__ = ["die_with"]
