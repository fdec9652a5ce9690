"""The `waybill` command as the demo uses it: a subprocess in the folder of the home, its answers as JSON.

What the command tells on the way (stderr) goes where the demo's own output goes. Nothing is imported of it.
"""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from connect_core.errors import Fatal, Retriable, Unreachable


@dataclass(frozen=True)
class Waybill:
    """`folder` is the working folder of every call, `program` the command's path."""

    folder: Path
    program: Path

    @classmethod
    def here(cls, folder: Path) -> Waybill:
        """The command that belongs to this interpreter."""
        program = Path(sys.executable).parent / "waybill"
        if not program.exists():
            raise Fatal("The waybill command is not installed", where=str(program), next_step="pip install -e .")
        return cls(folder, program)

    def show(self, *arguments: str) -> None:
        """Runs it with its output on this terminal. Raises when it ends otherwise than well."""
        sys.stdout.flush()
        done = subprocess.run([str(self.program), *arguments], cwd=self.folder, check=False)
        _check(arguments, done.returncode)

    def begin(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Starts it, with its output on this terminal, and does not wait for its end."""
        sys.stdout.flush()
        return subprocess.Popen([str(self.program), *arguments], cwd=self.folder)

    def ask(self, *arguments: str) -> Any:
        """Its answer with `--json`. Raises when it ends otherwise than well."""
        command = [str(self.program), *arguments, "--json"]
        done = subprocess.run(command, cwd=self.folder, check=False, stdout=subprocess.PIPE)
        _check(arguments, done.returncode)
        return json.loads(done.stdout)

    def pasteable(self, *arguments: str) -> str:
        """The same call as a person types it in `folder`, in a shell where nothing was activated."""
        found = shutil.which("waybill")
        program = "waybill" if found and Path(found).samefile(self.program) else self._shown_program()
        return shlex.join([program, *arguments])

    def _shown_program(self) -> str:
        return str(self.program.relative_to(self.folder) if self.program.is_relative_to(self.folder) else self.program)


def _check(arguments: tuple[str, ...], status: int) -> None:
    if status == 0:
        return
    kind = {3: Unreachable, 6: Fatal}.get(status, Retriable)
    raise kind(f"`waybill {shlex.join(arguments)}` ended with exit code {status}", next_step="See its output above")
