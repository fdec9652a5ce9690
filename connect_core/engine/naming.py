"""How engines call themselves in the rows of their runs. Pure."""

from __future__ import annotations

import sys


def described(kind: str, spark: str = "") -> str:
    """As `submit, Spark 4.1.3, Python 3.11`. Driver and workers have the same minor version of Python: inline ones are
    children of the driver, and Spark refuses others."""
    python = f"Python {sys.version_info.major}.{sys.version_info.minor}"
    return ", ".join([kind, *([f"Spark {spark}"] if spark else []), python])
