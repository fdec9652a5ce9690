"""Programs that write log files, and what rotation, people and other programs do to these files meanwhile.

Real files of one folder, in the memory of this machine. Every line that is written is remembered with the file it went
to, its place there and its moment: `checker` compares that with what came out. Nothing here imports the product. Each
deed is one moment of virtual time, and the files' own times are virtual ones.
"""

from __future__ import annotations

import os
import random
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

STARTED_S = 1_767_225_600
"""The moment 0 of virtual time, in seconds of Unix time."""
MAX_LINE_BYTES = 64
_BETWEEN_LOOKS_S = 1.0
"""Longer than a task pauses between two runs: who has lived so long was looked into."""


def unix_ns(virtual_ns: int) -> int:
    return STARTED_S * 1_000_000_000 + virtual_ns


@dataclass(eq=False)
class Line:
    """`whole` is False while its line feed is missing. `lost` says what destroyed it when nobody could have read it
    since, and `unseen` that nobody had looked at its file since it was written; a `bad` one is longer than the source
    takes."""

    text: bytes
    begin: int
    at_s: float
    whole: bool = True
    lost: str = ""
    unseen: bool = False
    bad: bool = False


@dataclass(eq=False)
class LogFile:
    """One file under whatever name: `path` is None when it is gone. `number` is its inode; made at `born_ns`."""

    path: Path | None
    number: int
    born_ns: int
    lines: list[Line] = field(default_factory=list)
    unseen: bool = False
    """It was renamed before anybody had looked into it: nobody can know for sure that it was ever at the path."""
    anew: bool = False
    """It begins where a file was cut: renamed before anybody read on there, it is behind a gap without an end."""
    in_doubt: bool = False
    """Rotation threw it away before a run had gone on to the next one, or had read its end after it was left alone:
    nobody can know what its writer still added."""
    hidden: bool = False
    """It came behind one that was renamed, or between two runs, and was gone before anybody had looked into it; or the
    ledger has forgotten its log."""


_COPY = re.compile(r"\.(202612|9)\d\d$")
"""The names of copies."""


@dataclass(eq=False)
class Program:
    """Writes one log at `path`. A `foreign` one writes beside the logs that are read, under a name like theirs. With a
    `linked` one the path is a symbolic link to the present file."""

    name: str
    path: Path
    foreign: bool = False
    linked: bool = False
    alike: bool = False
    """All its lines are equal."""
    files: list[LogFile] = field(default_factory=list)
    count: int = 0
    closed: bool = False
    dated: bool | None = None
    """How its files are renamed, once the first of them was: one rotation has one scheme."""

    @property
    def current(self) -> LogFile | None:
        """None as well while it is renamed, and the next one is not begun."""
        last = self.files[-1] if self.files else None
        there = last is not None and last.path is not None and (self.linked or last.path == self.path)
        return last if there else None

    def lines(self) -> Iterator[tuple[LogFile, Line]]:
        """In the order in which they were written."""
        return ((file, line) for file in self.files for line in file.lines)


class LogFolder:
    """All programs of one history. `now_s` is virtual; `births` says by inode when a file was made,
    `held` the most that it held when anybody read in it."""

    def __init__(
        self,
        folder: Path,
        chance: random.Random,
        now_s: Callable[[], float],
        births: dict[int, int],
        held: dict[int, int],
        say: Callable[[str], None],
    ) -> None:
        self.folder, self._chance, self._now_s, self._births, self._held = folder, chance, now_s, births, held
        self._say = say
        self.programs: list[Program] = []
        self._count = 0
        self._newest_ns = 0

    # ---------------------------------------------------------------------------------------------------- writing

    def start(self, program: Program, lines: int) -> None:
        self.programs.append(program)
        self._begin_file(program)
        self.write(program, lines)

    def write(self, program: Program, lines: int, *, torn: bool = False) -> None:
        """Whole lines; the last one is left without its end when `torn`. A line that was left so is finished first."""
        file = program.current or self._begin_file(program)
        self._append(program, file, lines, torn)

    def write_bad(self, program: Program) -> None:
        """A line that is too long."""
        self.finish(program)
        self._append(program, program.current or self._begin_file(program), 1, False, b"x" * MAX_LINE_BYTES)

    def write_to_former(self, program: Program, file: LogFile, lines: int) -> None:
        """A program that has its file still open writes to it under its new name."""
        self._append(program, file, lines, False)

    def finish(self, program: Program) -> None:
        """The line that was left without its end gets it."""
        file = program.current
        if file is not None and file.lines and not file.lines[-1].whole:
            self._append(program, file, 0, False)

    def _append(self, program: Program, file: LogFile, lines: int, torn: bool, more: bytes = b"") -> None:
        assert file.path is not None
        data = b""
        if file.lines and not file.lines[-1].whole:
            last = file.lines[-1]
            rest = b"" if program.alike else b"-rest"
            last.text, last.whole, data = last.text + rest, True, rest + b"\n"
        place = file.path.stat().st_size + len(data)
        for number in range(lines):
            text = self._text(program) + more
            whole = not (torn and number == lines - 1)
            file.lines.append(Line(text, place, self._now_s(), whole, bad=bool(more)))
            data += text + b"\n" * whole
            place += len(text) + whole
        with file.path.open("ab") as out:
            out.write(data)
        self._say(f"{self._called(file.path)} gets {data!r}")
        self._touch(file.path)

    def _text(self, program: Program) -> bytes:
        program.count += 1
        if program.alike:
            return f"{program.name}: heartbeat".encode()
        padding = "." * self._chance.choice((0, 3, 17))
        return f"{program.name}:{program.count}:{padding}".encode()

    def _begin_file(self, program: Program) -> LogFile:
        self._count += 1
        path = program.path
        if program.linked:
            path = path.with_name(f"{path.stem}-of-{self._count}.data")
        path.touch(exist_ok=False)
        born_ns = self._born(path)
        if program.linked:
            new = path.with_name(f"{path.name}.link")
            new.symlink_to(path.name)
            new.rename(program.path)
        file = LogFile(path, path.stat().st_ino, born_ns)
        program.files.append(file)
        self._say(f"{self._called(path)} is begun")
        return file

    # ------------------------------------------------------------------------------------- rotation that loses nothing

    def rename(self, program: Program, *, dated: bool = False) -> LogFile | None:
        """`app.log` becomes `app.log.1`, and what had that name `app.log.2`; or it gets a name with its date. The next
        line makes the file anew."""
        file = program.current
        if file is None or file.path is None or not file.lines or program.linked:
            return None
        program.dated = dated if program.dated is None else program.dated
        if program.dated:
            name = f"{program.path.name}.202611{20 + len(program.files):02}"
            return self._renamed(program, file, program.path.with_name(name))
        numbered = {one.path: one for one in program.files if one.path is not None and one is not file}
        for number in range(len(program.files), 0, -1):
            former = numbered.get(program.path.with_name(f"{program.path.name}.{number}"))
            if former is not None and former.path is not None:
                self._move(former, program.path.with_name(f"{program.path.name}.{number + 1}"))
        return self._renamed(program, file, program.path.with_name(f"{program.path.name}.1"))

    def _renamed(self, program: Program, file: LogFile, new: Path) -> LogFile:
        """Behind a file that is gone there is a gap without an end until somebody has accepted it, and what is renamed
        meanwhile is in it."""
        self._move(file, new)
        gone = any(one.path is None for one in program.files[: program.files.index(file)])
        file.unseen = gone or not self._held.get(file.number)
        return file

    def _move(self, file: LogFile, new: Path) -> None:
        assert file.path is not None
        self._say(f"{self._called(file.path)} becomes {new.name}")
        file.path = file.path.rename(new)

    def link_on(self, program: Program) -> None:
        """The link leads to a new file."""
        if program.linked and program.current and program.current.lines:
            self.finish(program)
            program.current.unseen = not self._held.get(program.current.number)
            self._begin_file(program)

    def begin_file(self, program: Program) -> None:
        """The file that takes the place of one that was renamed."""
        if program.current is None and not program.path.exists():
            self._begin_file(program)

    def copy(self, program: Program) -> None:
        """`cp -p`: other inode, same times, and a name that the program's rotation could have given."""
        file = program.current
        if file is None or file.path is None or not file.lines:
            return
        number = f"{'202612' if program.dated else '9'}{len(self.copies()):02}"
        copy = program.path.with_name(f"{program.path.name}.{number}")
        if not copy.exists():
            shutil.copy2(file.path, copy)
            self._births[copy.stat().st_ino] = unix_ns(int(self._now_s() * 1e9))
            self._say(f"{self._called(file.path)} is copied to {self._called(copy)}")

    def copies(self) -> list[Path]:
        return [path for path in self.folder.iterdir() if _COPY.search(path.name)]

    def delete_read(self, program: Program) -> None:
        """The program has ended, and somebody clears its files away."""
        program.closed = True
        for file in program.files:
            self._delete(file)
        if program.linked:
            program.path.unlink()

    def delete_former(self, file: LogFile, *, in_doubt: bool) -> None:
        """Rotation throws it away."""
        file.in_doubt = in_doubt
        self._delete(file)

    def _delete(self, file: LogFile) -> None:
        if file.path is not None:
            self._say(f"{self._called(file.path)} is deleted")
            file.path.unlink()
            file.path = None

    def forget(self, program: Program) -> None:
        """Nobody knows any more that there is this log: its files that have other names by now are not looked for."""
        for file in program.files:
            self._held.pop(file.number, None)
            file.unseen = file.hidden = file.unseen or file is not program.current

    # ----------------------------------------------------------------------------------------- what destroys lines

    def cut(self, program: Program) -> None:
        """The file is cut to nothing and goes on."""
        file = program.current
        if file is None or file.path is None:
            return
        self._lose(program, file, "cut")
        os.truncate(file.path, 0)
        self._say(f"{self._called(file.path)} is cut to nothing")
        self._held.pop(file.number, None)
        for line in file.lines:
            line.whole = True
        program.files[-1] = replace(file, path=None)
        program.files.append(LogFile(file.path, file.number, file.born_ns, anew=True))
        self._touch(file.path)

    def replace(self, program: Program) -> None:
        """Another file is put where it was."""
        file = program.current
        if file is None or file.path is None or program.linked:
            return
        self._lose(program, file, "replaced")
        new = file.path.with_name("new")
        new.touch()
        new.rename(file.path)
        file.path = None
        born_ns = self._born(program.path)
        program.files.append(LogFile(program.path, program.path.stat().st_ino, born_ns))
        self._say(f"{self._called(program.path)} is another file now")

    def delete_unread(self, program: Program) -> None:
        file = program.current
        if file is None or file.path is None or program.linked:
            return
        self._lose(program, file, "deleted")
        self._delete(file)

    def _lose(self, program: Program, file: LogFile, how: str) -> None:
        before = _former(program, file)
        behind_one = before is not None and (before.path is not None or before.hidden)
        lived_s = self._now_s() - (self._births[file.number] / 1e9 - STARTED_S)
        file.hidden = (behind_one or lived_s < _BETWEEN_LOOKS_S) and not self._held.get(file.number)
        for line in file.lines:
            line.lost, line.unseen = how, line.begin >= self._held.get(file.number, 0)

    def _born(self, path: Path) -> int:
        """When it is made. No two files are at one moment: where time stands still each is a nanosecond younger."""
        self._newest_ns = max(self._newest_ns + 1, unix_ns(int(self._now_s() * 1e9)))
        self._births[path.stat().st_ino] = self._newest_ns
        self._touch(path)
        self._held.pop(path.stat().st_ino, None)
        return self._newest_ns

    def _called(self, path: Path) -> str:
        """Its name, and when it was made: inodes are other ones in each process."""
        born_s = self._births[path.stat().st_ino] / 1e9 - STARTED_S
        return f"{path.name} (made at {born_s:.3f})"

    def _touch(self, path: Path) -> None:
        """Nothing is written to a file before it is made: only a copy looks as if it had been."""
        moment_ns = max(unix_ns(int(self._now_s() * 1e9)), self._births.get(path.stat().st_ino, 0))
        os.utime(path, ns=(moment_ns, moment_ns))


def _former(program: Program, file: LogFile) -> LogFile | None:
    """The one that was at the path before."""
    number = program.files.index(file)
    return program.files[number - 1] if number else None
