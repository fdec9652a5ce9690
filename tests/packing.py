"""Compresses files as people and logrotate do: by the commands, or by the libraries where a command is missing."""

from __future__ import annotations

import bz2
import gzip
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import lz4.frame
import zstandard

PACKERS: Mapping[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".zst": zstandard.ZstdCompressor(write_checksum=True).compress,
    ".bz2": bz2.compress,
    ".lz4": lz4.frame.compress,
}
_COMMANDS = {
    ".gz": ["gzip"],
    ".zst": ["zstd", "-q", "--rm"],
    ".bz2": ["bzip2"],
    ".lz4": ["lz4", "-q", "-m", "--rm"],
}


def pack(path: Path, ending: str = ".gz") -> Path:
    """The compressed file, which bears the times of `path`; that is removed."""
    packed = path.with_name(path.name + ending)
    command = _COMMANDS[ending]
    if shutil.which(command[0]):
        subprocess.run([*command, str(path)], check=True)
        return packed
    packed.write_bytes(PACKERS[ending](path.read_bytes()))
    shutil.copystat(path, packed)
    path.unlink()
    return packed
