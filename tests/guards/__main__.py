"""`make guards`: takes one mechanism after the other out of a scratch copy, and sees the named tests turn red.

    python -m tests.guards [NAME …]          only the guards whose names hold one of these words

First all named tests must be green in an untouched copy. Then, for each patch, in a copy of its own: every named test
must fail by itself. A test that cannot be collected or set up, or that hangs, has not noticed anything. Exit code 1
when a guard stays green, does not apply, or its tests are not green to begin with.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.guards import verdicts
from tests.guards.patches import ROOT, Guard, apply, every
from tests.guards.verdicts import Ending

_LIMIT_S = 1200
_AT_ONCE = os.cpu_count() or 1
"""So many pytest sessions run side by side, each in a copy of its own."""


@dataclass(frozen=True)
class Result:
    """What became of one guard. `fault` says what is wrong; empty when every named test turned red."""

    guard: Guard
    fault: str
    seconds: float


def main(words: Sequence[str]) -> int:
    guards = [guard for guard in every() if not words or any(word in guard.name for word in words)]
    if not guards:
        print(f"no guard has one of these words in its name: {', '.join(words)}")
        return 2
    with tempfile.TemporaryDirectory(prefix="waybill-guards-") as place:
        untouched = Path(place) / "untouched"
        copy_tracked(untouched)
        if not _all_green(guards, untouched):
            return 1
        started = time.monotonic()
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            results = list(pool.map(lambda guard: _tried(guard, untouched, Path(place) / guard.name), guards))
    broken = [result for result in results if result.fault]
    minutes = (time.monotonic() - started) / 60
    print(f"\n{len(results)} guards in {minutes:.0f} min, {len(broken)} do not hold")
    return 1 if broken else 0


def copy_tracked(folder: Path) -> None:
    """The tracked files as they stand in the working tree."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    for name in listed.decode().split("\0"):
        if name and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


def _all_green(guards: Sequence[Guard], folder: Path) -> bool:
    tests = sorted({test for guard in guards for test in guard.red})
    print(f"{len(tests)} tests without any patch …", flush=True)
    started = time.monotonic()
    shares = _shared_by_file(tests)
    folders = [folder, *(folder.with_name(f"{folder.name}-{at}") for at in range(1, len(shares)))]
    for beside in folders[1:]:
        shutil.copytree(folder, beside, symlinks=True)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        endings = list(pool.map(run, shares, folders))
    faults = [fault for share, ended in zip(shares, endings, strict=True) for fault in not_green(share, ended)]
    for fault in faults:
        print(f"  {fault}")
    print(f"  {'not all green' if faults else 'green'}, {time.monotonic() - started:.0f} s\n", flush=True)
    return not faults


def _shared_by_file(tests: Sequence[str]) -> list[list[str]]:
    """The tests in as many shares as run at once; those of one file stay together, for they may share a server."""
    files = sorted({test.partition("::")[0] for test in tests})
    shares = [set(files[at::_AT_ONCE]) for at in range(min(_AT_ONCE, len(files)))]
    return [[test for test in tests if test.partition("::")[0] in share] for share in shares]


def _tried(guard: Guard, untouched: Path, folder: Path) -> Result:
    started = time.monotonic()
    shutil.copytree(untouched, folder, symlinks=True)
    fault = apply(guard, folder) or "; ".join(not_red(guard.red, run(guard.red, folder)))
    result = Result(guard, fault, time.monotonic() - started)
    rules = ", ".join(str(rule) for rule in guard.rules)
    line = f"{'NOT RED' if fault else 'red':8} rule {rules:6} {result.seconds:4.0f} s  {guard.name}: {guard.takes_out}"
    print(f"{line}\n         {fault}" if fault else line, flush=True)
    shutil.rmtree(folder)
    return result


def run(tests: Sequence[str], folder: Path) -> dict[str, Ending]:
    """How each of `tests` ends in the tree in `folder`, in one pytest session."""
    told = folder / "verdicts.json"
    told.unlink(missing_ok=True)  # of the copy that this one was made from
    options = ["-q", "-p", "tests.guards.verdicts", "-p", "no:cacheprovider", "--rootdir", str(folder)]
    options += ["--hypothesis-profile", "thorough"]  # what a mechanism prevents may be one example of many
    environment = {**os.environ, "PYTHONPATH": str(folder), verdicts.FILE: str(told)}
    command = [sys.executable, "-m", "pytest", *options, *tests]
    with open(folder / "pytest.log", "w") as log:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
        try:
            process.wait(_LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    return verdicts.read(told)


def not_green(tests: Sequence[str], endings: dict[str, Ending]) -> list[str]:
    """A sentence for each test that did not pass in all its choices."""
    faults = []
    for test in tests:
        seen = list(verdicts.of(test, endings))
        bad = [ending for ending in seen if ending.how != "passed"]
        if not seen:
            faults.append(f"{test} did not run")
        elif bad:
            faults.append(f"{test} {bad[0].how}: {bad[0].why}")
    return faults


def not_red(tests: Sequence[str], endings: dict[str, Ending]) -> list[str]:
    """A sentence for each test of which no choice failed by itself."""
    faults = []
    for test in tests:
        seen = list(verdicts.of(test, endings))
        broken = next((ending for ending in seen if ending.how == "broken"), None)
        if broken or not seen:
            faults.append(f"{test} is broken: {broken.why if broken else 'it did not run'}")
        elif all(ending.how == "passed" for ending in seen):
            faults.append(f"{test} stays green")
    return faults


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
