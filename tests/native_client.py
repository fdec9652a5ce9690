"""RocketMQ's client for C++ and its package for Python, for processes of their own: `PYTHONPATH` is all they need.

Both come from the package index, every byte checked: the package itself, which brings no library, and another one, the
source archive of which holds a library that was built from release 2.1.0. The library lies beside the package's
modules, where it is looked for first. They stay out of the tests' own interpreter: their threads are theirs.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import pytest

from connect_core.stack import jars

_PACKAGE = ("rocketmq-client-python", "2.0.0", "692324adaa8107eebd0369117043871d90035ddb1562f9999c5681136f16f738")
_LIBRARY = ("rocketmq-python-cvs", "2.1.0.3", "99e4ce8008554a74193a3ad94b60f939a4666c48ffabbf4c4417a109daf1419d")
_FETCH_LIMIT_S = 300


@pytest.fixture(scope="session")
def native_packages() -> Path:
    """The folder for `PYTHONPATH`; it is kept in the cache that the jars are in."""
    folder = jars.cache_folder() / "native" / f"{_PACKAGE[1]}-{_LIBRARY[1]}"
    with jars.locked(folder.with_name(f"{folder.name}.lock")):
        if not folder.is_dir():
            _fetch(folder)
    return folder


@pytest.fixture(scope="session")
def package_without_library(native_packages: Path, worker_folder: Path) -> Path:
    """The same without the library, as the package alone is installed."""
    folder = worker_folder / "no-library"
    (folder / "rocketmq").mkdir(parents=True)
    for module in (native_packages / "rocketmq").glob("*.py"):
        (folder / "rocketmq" / module.name).write_bytes(module.read_bytes())
    return folder


def _fetch(folder: Path) -> None:
    with tempfile.TemporaryDirectory(dir=folder.parent) as work:
        wanted = Path(work) / "wanted.txt"
        lines = [f"{name}=={version} --hash=sha256:{digest}\n" for name, version, digest in (_PACKAGE, _LIBRARY)]
        wanted.write_text("".join(lines))
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        command += ["--no-binary", ":all:", "--no-build-isolation", "--dest", work, "--requirement", str(wanted)]
        subprocess.run(command, check=True, timeout=_FETCH_LIMIT_S, cwd=work)
        made = Path(work) / "made"
        _unpack(Path(work), _PACKAGE, made, ".py")
        _unpack(Path(work), _LIBRARY, made, ".so")
        made.rename(folder)


def _unpack(archives: Path, source: tuple[str, str, str], made: Path, suffix: str) -> None:
    """The files of the archive's module `rocketmq` that end so."""
    name, version, _ = source
    (made / "rocketmq").mkdir(parents=True, exist_ok=True)
    with tarfile.open(archives / f"{name}-{version}.tar.gz") as archive:
        for member in archive.getmembers():
            path = Path(member.name)
            if path.parts[1:2] == ("rocketmq",) and path.suffix == suffix and (held := archive.extractfile(member)):
                (made / "rocketmq" / path.name).write_bytes(held.read())
