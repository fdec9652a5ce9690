"""docs/delivery-rules.md: its rules as the tests read them, and the lists of guards in it, which are generated.

python -m tests.guards.page          writes the lists (`make docs` does so)
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

from tests.guards.patches import ROOT, Guard, every

PAGE = ROOT / "docs" / "delivery-rules.md"
PARTS = ("Prevents", "Code", "Tests", "Guards")
_WIDTH = 120
_RULE = re.compile(r"^### Rule (\d+): .*?(?=^##|\Z)", re.MULTILINE | re.DOTALL)
_PART = re.compile(r"^- \*\*(\w+)\*\*:\s*(.*?)(?=^- \*\*|^#|\n\n|\Z)", re.MULTILINE | re.DOTALL)
_GUARDS = re.compile(r"^- \*\*Guards\*\*:.*?(?=\n\n|\s*\Z)", re.MULTILINE | re.DOTALL)


def rules(page: str) -> dict[int, str]:
    """By number, from its heading to the next one. Raises ValueError when a number is there twice."""
    found = [(int(match[1]), match[0]) for match in _RULE.finditer(page)]
    if len(dict(found)) < len(found):
        raise ValueError(f"a rule is on the page twice: {[number for number, _ in found]}")
    return dict(found)


def parts(rule: str) -> dict[str, str]:
    """Of one rule, by name."""
    return {match[1]: match[2].strip() for match in _PART.finditer(rule)}


def with_guards(page: str, guards: Sequence[Guard]) -> str:
    """The page with the guards of each rule in its list. A rule that has none keeps what the page says of that."""

    def listed(match: re.Match[str]) -> str:
        names = [f"`{guard.name}`" for guard in guards if int(match[1]) in guard.rules]
        return _GUARDS.sub(_list_of(names), match[0], count=1) if names else match[0]

    return _RULE.sub(listed, page)


def _list_of(names: Sequence[str]) -> str:
    line = f"- **Guards**: {', '.join(names)}"
    return textwrap.fill(line, _WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


if __name__ == "__main__":
    PAGE.write_text(with_guards(PAGE.read_text(), every()))
