"""What a person reads is plain English: no text of the product and no page has one of these phrases.

Read are all texts of the code but docstrings (errors, help, output, options), what a command's docstring says as its
help, and the README with the pages in docs. `PLAINER` may only grow.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from connect_core import errors

ROOT = Path(__file__).resolve().parents[2]

PLAINER = {
    "whoever": "name who does it",
    "is told": "is reported; or name who learns what",
    "are told": "are reported; or name who learns what",
    "told as": "reported as",
    "goes on from": "resumes at",
    "goes on behind": "continues after",
    "go on behind": "continue after",
    "so long and": "keep running for DURATION and",
    "there already": "already in the target",
    "stands": "is",
    "anew": "again",
    "what was seen": "name what was found",
    "somebody": "another run, another command, a person",
    "under way": "at work, in flight",
    "for ever": "forever",
    "is to have": "requires",
    "cannot be had": "cannot be read",
    "when left out": "by default",
    "mend": "correct, fix",
    "mends": "corrects, fixes",
    "ended without a word": "ended without reporting",
    "looked at first": "checked first",
    "what became of": "what happened to",
    "what becomes of": "what happens to",
    "seen there": "found in the target",
    "gone on with": "continued; call again",
    "shared out": "assigned, distributed; of partitions, rebalanced",
    "throws out": "disconnects",
    "empty and deaf": "without messages or subscriptions",
    "losing is never chosen": "when in doubt, deliver twice rather than lose",
    "nobody can see": "cannot be detected",
    "nobody can tell": "cannot be known",
    "any more": "no longer",
    "without a word": "silently",
    "told so": "reported; or name who learns it",
    "is not told": "is not reported",
    "be told": "be reported; or name who learns what",
    "looked through": "searched",
    "may be there twice": "may be in the target twice, possible duplicates",
}
"""Of each phrase what to write instead."""

ERRORS = {name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, Exception)}
NAMES = ("brokerAddrs ", "extFields", "initdb ", "offsetTable ", "pip ", "prctl ", "pyspark ", "spark-submit ")
"""Programs and fields keep their own case."""
FAULTS = ("connect_core/config/connections.py", "connect_core/config/endpoints.py")
"""Their errors become faults of a document, which follow the path of a field."""

_PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_PHRASES = re.compile(rf"(?<!-)\b({'|'.join(map(re.escape, PLAINER))})\b(?!-| for\b| still\b)", re.IGNORECASE)


def texts(module: Path) -> Iterator[tuple[int, str]]:
    """Line and text of each literal of `module` but docstrings; those of commands are their help, and count."""
    tree = ast.parse(module.read_text())
    silent = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    if module.parent.name == "cli":
        silent -= {id(node.body[0].value) for node in tree.body if _is_command(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in silent:
            yield node.lineno, node.value


def _is_command(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and isinstance(node.body[0], ast.Expr)


def unplain(where: str, numbered: Iterable[tuple[int, str]]) -> list[str]:
    return [
        f'{where}:{line}: "{found[0]}": write {PLAINER[found[0].lower()]}'
        for line, text in numbered
        for found in _PHRASES.finditer(text)
    ]


@cache
def everything() -> dict[str, tuple[tuple[int, str], ...]]:
    """By file the lines and texts that a person reads."""
    modules = {
        str(file.relative_to(ROOT)): tuple(texts(file)) for file in sorted((ROOT / "connect_core").rglob("*.py"))
    }
    pages = {str(page.relative_to(ROOT)): tuple(enumerate(page.read_text().splitlines(), 1)) for page in _PAGES}
    return {**modules, **pages}


def test_what_a_person_reads_is_plain() -> None:
    assert [fault for where, numbered in everything().items() for fault in unplain(where, numbered)] == []


def beginnings(module: Path) -> Iterator[tuple[int, str]]:
    """Line and first words of each error of our tree that `module` makes, and of its next step, as far as written."""
    calls = (node for node in ast.walk(ast.parse(module.read_text())) if isinstance(node, ast.Call))
    for call in calls:
        if isinstance(call.func, ast.Name) and call.func.id in ERRORS:
            given = [*call.args[:1], *(one.value for one in call.keywords if one.arg in ("what", "next_step"))]
            for text in given:
                first = text.values[0] if isinstance(text, ast.JoinedStr) else text
                if isinstance(first, ast.Constant) and isinstance(first.value, str):
                    yield call.lineno, first.value


def test_an_error_and_its_next_step_begin_with_a_capital_letter() -> None:
    small = [
        f"{name}:{line}: {text}"
        for file in sorted((ROOT / "connect_core").rglob("*.py"))
        if (name := str(file.relative_to(ROOT))) not in FAULTS
        for line, text in beginnings(file)
        if text[:1].islower() and not text.startswith(NAMES)
    ]
    assert small == []


def test_the_plainer_form_is_named() -> None:
    assert unplain("page.md", enumerate(["Whoever reads it"], 1)) == ['page.md:1: "Whoever": write name who does it']
