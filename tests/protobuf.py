"""Descriptors for tests: what protoc makes of a text."""

from __future__ import annotations

import sys
from base64 import b64encode
from functools import cache
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

from grpc_tools import protoc


@cache
def descriptor_set(text: str, **imported: str) -> bytes:
    """A FileDescriptorSet. `imported`: the texts of other files, `NAME.proto` each."""
    with TemporaryDirectory() as folder:
        for name, body in {"main": text, **imported}.items():
            (Path(folder) / f"{name}.proto").write_text(body)
        made = Path(folder) / "made.desc"
        known = files("grpc_tools") / "_proto"
        given = ["protoc", f"-I{folder}", f"-I{known}", "--include_imports", f"--descriptor_set_out={made}"]
        assert protoc.main([*given, f"{folder}/main.proto"]) == 0
        return made.read_bytes()


def descriptors(text: str, **imported: str) -> str:
    """As a document has it."""
    return b64encode(descriptor_set(text, **imported)).decode()


def protoc_in(folder: Path) -> Path:
    """A folder with the command, for PATH."""
    folder.mkdir()
    command = folder / "protoc"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m grpc_tools.protoc "$@"\n')
    command.chmod(0o755)
    return folder
