"""Archives of the classes that a server in Java loads: with one it starts in half the processor time (JEP 350).

An archive belongs to a folder of jars and stands beside it. A JVM that it does not fit (another Java, other jars)
starts as if there were none, and so does every server whose archive nobody has made. `archiving` makes them.
"""

from __future__ import annotations

from pathlib import Path


def of(jars: Path) -> Path:
    """Where the archive of a folder of jars is, if there is one."""
    return jars.with_name(f"{jars.name}.jsa")


def arguments(jars: Path) -> tuple[str, ...]:
    """What Java is given to use it."""
    archive = of(jars)
    return (f"-XX:SharedArchiveFile={archive}",) if archive.is_file() else ()


def is_current(jars: Path, java: Path) -> bool:
    """Whether it is newer than the jars and than the Java that is to read it."""
    archive = of(jars)
    return archive.is_file() and archive.stat().st_mtime > max(_installed(jars), _installed(java.resolve()))


def _installed(path: Path) -> float:
    """When it came to this machine: a package's files keep the time of modification that they had where it was made."""
    return path.stat().st_ctime
