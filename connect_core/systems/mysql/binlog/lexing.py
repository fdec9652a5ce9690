"""The words of a statement, as the server reads them: without comments, and with what is in those that it executes.
Pure.

https://mariadb.com/docs/server/reference/sql-statements/comment-syntax
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from connect_core.systems.mysql.binlog.table_names import TableName


class LexedKind(Enum):
    WORD = "word"
    NAME = "name"
    """In backticks."""
    TEXT = "text"
    """In single or double quotes. The latter are names where sql_mode has ANSI_QUOTES."""
    SIGN = "sign"
    END = "end"


class Lexed(NamedTuple):
    kind: LexedKind
    text: str


_END = Lexed(LexedKind.END, "")
_TOKEN = re.compile(
    r"""
    (?P<skipped> \s+ | /\*M?!(?:\d{5,6})? | \*/ | /\*.*?(?:\*/|\Z) | \#[^\n]* | --(?=\s|\Z)[^\n]* )
    | (?P<name> `(?:[^`]|``)*+` )
    | (?P<text> '(?:[^'\\]++|''|\\.)*+' | "(?:[^"\\]++|""|\\.)*+" )
    | (?P<word> [\w$@]+ )
    | (?P<sign> . )
    """,
    re.DOTALL | re.VERBOSE,
)
_KINDS = {"name": LexedKind.NAME, "text": LexedKind.TEXT, "word": LexedKind.WORD, "sign": LexedKind.SIGN}


def lexed(text: str) -> Iterator[Lexed]:
    """Begin and end of a comment that the server executes are passed over, and what is in it is not, whatever version
    it asks for."""
    for found in _TOKEN.finditer(text):
        if kind := _KINDS.get(found.lastgroup or ""):
            yield Lexed(kind, found.group())


class StatementWords:
    """A statement that is read from its begin on. It may be large: what nobody asks for is not looked at."""

    def __init__(self, text: str) -> None:
        self._tokens = lexed(text)
        self._next = next(self._tokens, _END)

    def take(self) -> Lexed:
        taken, self._next = self._next, next(self._tokens, _END)
        return taken

    def take_word(self) -> str:
        """The word that is next, in capital letters; empty where there is none, and then nothing is taken."""
        return self.take().text.upper() if self._next.kind is LexedKind.WORD else ""

    def takes(self, *words: str) -> bool:
        """Whether one of these words is next, which is taken then."""
        if self._next.kind is not LexedKind.WORD or self._next.text.upper() not in words:
            return False
        self.take()
        return True

    def takes_sign(self, sign: str) -> bool:
        """Whether this is next, which is taken then."""
        if self._next != (LexedKind.SIGN, sign):
            return False
        self.take()
        return True

    def take_name(self) -> str:
        """Empty where none is next."""
        kind, text = self._next
        if kind is LexedKind.WORD:
            return self.take().text
        if kind is LexedKind.NAME or (kind is LexedKind.TEXT and text.startswith('"')):
            quote = self.take().text[0]
            return text[1:-1].replace(quote * 2, quote)
        return ""

    def take_table(self, database: str) -> TableName | None:
        """Of this database, where none is named."""
        first = self.take_name()
        if first and self._next == (LexedKind.SIGN, "."):
            self.take()
            second = self.take_name()
            return TableName(first, second) if second else None
        return TableName(database, first) if first else None

    def find(self, *words: str) -> str:
        """Takes all up to the first of these words, and that; empty where there is none."""
        while self._next.kind is not LexedKind.END:
            found = self.take_word() or self.take().text
            if found in words:
                return found
        return ""

    def are_over(self) -> bool:
        """But for semicolons, which are taken."""
        while self._next == (LexedKind.SIGN, ";"):
            self.take()
        return self._next.kind is LexedKind.END
