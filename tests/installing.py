"""Packages as pip leaves them, in a folder of their own."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path


def install(folder: Path, package: str, entries: Mapping[str, str], code: str, version: str = "1.0") -> None:
    """`package` is as `waybill-thing`, its module `waybill_thing`; `entries` are `name = value` lines by group. A
    version that is there is replaced."""
    module = package.replace("-", "_")
    for former in folder.glob(f"{module}-*.dist-info"):
        shutil.rmtree(former)
    metadata = folder / f"{module}-{version}.dist-info"
    metadata.mkdir(parents=True)
    (folder / f"{module}.py").write_text(code)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
    groups = "".join(f"[{group}]\n{lines}\n" for group, lines in entries.items())
    (metadata / "entry_points.txt").write_text(groups)
