"""The code that stands on the pages for authors, and that of the packages under examples/."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

DOCS = Path(__file__).parents[1] / "docs"
EXAMPLES = DOCS.parent / "examples"
FOR_AUTHORS = ("write-a-sink.md", "write-a-source.md")


def blocks(page: str, language: str = "python") -> list[str]:
    """In the order of the page."""
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)


def code_of(plugin: str) -> str:
    """The block with the plug-in of this name."""
    every = [block for page in FOR_AUTHORS for block in blocks(page)]
    (code,) = (block for block in every if re.search(rf'Plugin\(\s*"{plugin}"', block))
    return code


def code_of_format(name: str) -> str:
    """The block with the format of this name."""
    (code,) = (block for block in blocks("write-a-format.md") if f"{name.upper()} = RowFormat(" in block)
    return code


def cases_of_format(name: str) -> str:
    (code,) = (block for block in blocks("write-a-format.md") if f"from waybill_{name} import" in block)
    return code


def module_of(plugin: str) -> Any:
    return _executed(plugin, code_of(plugin), f"page: {plugin}")


def suite_of(plugin: str) -> Any:
    """What an author's test file for this system has: that of the page, or else the one in examples/cases."""
    sys.modules[f"waybill_{plugin}"] = example(plugin) if (EXAMPLES / plugin).is_dir() else module_of(plugin)
    path = EXAMPLES / "cases" / f"test_{plugin}.py"
    if path.exists():
        return _executed(path.stem, path.read_text(), str(path))
    return _executed(path.stem, file_of_tests(plugin), f"page: {path.name}")


def of_the_lines() -> Any:
    """The source that stands on its page together with its tests."""
    (code,) = (block for block in blocks("write-a-source.md") if "class TestLines" in block)
    return _executed("test_lines", code, "page: test_lines.py")


def file_of_tests(plugin: str) -> str:
    """The block with the tests of this system."""
    (code,) = (block for page in FOR_AUTHORS for block in blocks(page) if f"from waybill_{plugin} import" in block)
    return code


def _executed(name: str, code: str, path: str) -> Any:
    module = ModuleType(name)
    exec(compile(code, path, "exec", dont_inherit=True), module.__dict__)
    return module


def example(name: str) -> Any:
    """The module of a package under examples/."""
    path = EXAMPLES / name / f"waybill_{name}.py"
    module = ModuleType(f"waybill_{name}")
    sys.modules[module.__name__] = module  # where pydantic looks for what an option's type means
    exec(compile(path.read_text(), str(path), "exec", dont_inherit=True), module.__dict__)
    return module
