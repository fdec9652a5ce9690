"""The step `python`: a function that a package brings (`sdk.row_functions`). Light: its package is loaded when the
fields behind it are asked for.

transforms:
  - python: iban
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches

from connect_core.packages import FUNCTIONS, brought
from connect_core.pipeline.transforms.row_step import RowStep
from connect_core.rows.types import Type


@dataclass(frozen=True)
class PythonRows(RowStep):
    on_images = "cannot"
    name: str

    def after(self, rows: Type) -> Type:
        known = brought(FUNCTIONS)
        if self.name not in known:
            near = get_close_matches(self.name, known, n=1)
            meant = f"; did you mean {near[0]}?" if near else ""
            there = f"there are: {', '.join(sorted(known))}" if known else "there is none"
            raise ValueError(f"no installed package brings {self.name}{meant} ({there}): install the one that has it")
        from connect_core.pipeline.transforms.python_functions import shape_behind

        return shape_behind(self.name, rows)


def python_step(of: object) -> PythonRows:
    if not isinstance(of, str) or not of:
        raise ValueError("needs the name of a function that an installed package brings, as iban")
    return PythonRows(of)
