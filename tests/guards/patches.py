"""The guards: patches that take one mechanism each out of the product, and the tests that must notice.

A patch begins with lines that say what it is, above the difference itself (`git apply` passes over them):

    # rule: 5
    # takes out: whoever lost a lease can still settle under it
    # red: tests/contract/ledger/test_ledger_leases.py::test_who_lost_the_lease_is_fenced

`rule` is the number of a delivery rule (docs/delivery-rules.md), where `make docs` lists the guards of each; `red` may
stand several times, each names one test as pytest does. A test without a choice in brackets stands for all its choices,
of which one must fail.

When a patch does not fit any more: make its change by hand, put `git diff -U1` below its first lines, take it back, and
run `python -m tests.guards NAME`.
"""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
_SUITES = ("connect_core/sdk/testing", "tests/faults/kit")


@dataclass(frozen=True)
class Guard:
    path: Path
    rules: tuple[int, ...]
    takes_out: str
    red: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.path.stem

    @classmethod
    def read(cls, path: Path) -> Guard:
        """Raises ValueError when the patch does not say what it is."""
        told: dict[str, list[str]] = {"rule": [], "takes out": [], "red": []}
        for line in path.read_text().splitlines():
            if not line.startswith("# "):
                break
            word, _, said = line[2:].partition(": ")
            if word not in told or not said:
                raise ValueError(f"{path.name}: not a line of a guard: {line}")
            told[word].append(said)
        if not (told["rule"] and len(told["takes out"]) == 1 and told["red"]):
            raise ValueError(f"{path.name} must say its rule, what it takes out, and which test turns red")
        return cls(path, tuple(int(rule) for rule in told["rule"]), told["takes out"][0], tuple(told["red"]))


def every() -> list[Guard]:
    return [Guard.read(path) for path in sorted(FOLDER.glob("*.patch"))]


def apply(guard: Guard, folder: Path, *options: str) -> str:
    """What git says against it; empty when the patch could be applied to the tree in `folder`."""
    command = ["git", "apply", "--whitespace=nowarn", *options, str(guard.path)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    return done.stderr.strip() if done.returncode else ""


def is_there(test: str, root: Path = ROOT) -> bool:
    """Whether the named test stands in its file, or in a suite that its class inherits: of the SDK, or of faults."""
    file, _, rest = test.partition("::")
    owner, _, name = rest.partition("[")[0].rpartition("::")
    here = dict(_tests(root / file))
    suites = [one for folder in _SUITES for path in (root / folder).glob("*.py") for one in _tests(path)]
    known = dict(suites) | here
    return f"{owner}.{name}".lstrip(".") in here or any(f"{base}.{name}" in known for base in _bases(owner, known))


def _bases(owner: str, known: Mapping[str, str]) -> Iterator[str]:
    while owner := known.get(owner, ""):
        yield owner


@cache
def _tests(path: Path) -> tuple[tuple[str, str], ...]:
    """A file's functions and classes, and `class.function`; with a class the first one that it inherits. None where
    there is no file. Read once a process: many guards name one file."""
    if not path.is_file():
        return ()
    found: list[tuple[str, str]] = []
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            found.append((node.name, ""))
        elif isinstance(node, ast.ClassDef):
            found.append((node.name, ast.unparse(node.bases[0]) if node.bases else ""))
            found += [(f"{node.name}.{one.name}", "") for one in node.body if isinstance(one, ast.FunctionDef)]
    return tuple(found)
