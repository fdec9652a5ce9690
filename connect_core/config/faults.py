"""From pydantic's errors to faults that a person can act on: dotted path, line, the nearest known key. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from connect_core.config.references import MASK, is_reference, is_secret_name, masked
from connect_core.config.written import Place, Written
from connect_core.errors import Fault
from connect_core.masking import mask_secrets

_SHOWN_CHARACTERS = 80


def model_faults(
    error: ValidationError,
    model: type[BaseModel],
    written: Written | None = None,
    under: Place = (),
    *,
    complete: bool = True,
) -> Iterator[Fault]:
    """A fault for each error. `under` is the place of the model's data in the document: of options, which may hold
    references, errors about a reference's type are left out, for it is known when the reference is resolved. Of data
    that is not `complete` nothing is said to be missing, and nothing of it as a whole."""
    for detail in error.errors(include_url=False):
        if not complete and (detail["type"] == "missing" or not detail["loc"]):
            continue
        if under and is_reference(detail["input"]) and detail["type"] != "extra_forbidden":
            continue
        place = _place(detail)
        message = _message(detail, model, place)
        yield fault_at((*under, *place), message, written)


def fault_at(place: Place, message: str, written: Written | None) -> Fault:
    line = written.line(place) if written else None
    return Fault(".".join(map(str, place)), f"line {line}: {message}" if line else message)


def nearest(key: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown key: the key that was probably meant, and all there are."""
    names = sorted(known)
    near = get_close_matches(key, names, n=1, cutoff=0.6)
    meant = f"; did you mean {near[0]}?" if near else ""
    return f"{meant} (known: {', '.join(names)})" if names else meant


def model_at(model: type[BaseModel], place: Place) -> type[BaseModel]:
    """The model of the mapping that holds the value at `place`."""
    for part in place[:-1]:
        if isinstance(part, int):  # of a list, whose field has led to the model of its items
            continue
        field = model.model_fields.get(str(part))
        inner = next(_models_in(field.annotation), None) if field else None
        if inner is None:
            break
        model = inner
    return model


def field_names(model: type[BaseModel]) -> list[str]:
    """The keys that a document writes for `model`: aliases where fields have them."""
    return [field.alias or name for name, field in model.model_fields.items()]


def _place(detail: Any) -> Place:
    """An unknown key may be called as a branch is."""
    *outer, last = detail["loc"] or (None,)
    kept = [part for part in outer if not _is_branch(part)]
    if detail["type"] == "extra_forbidden" or not (last is None or _is_branch(last)):
        kept.append(last)
    return tuple(kept)


def _message(detail: Any, model: type[BaseModel], place: Place) -> str:
    if detail["type"] == "extra_forbidden":
        return f'unknown key "{place[-1]}"' + nearest(str(place[-1]), field_names(model_at(model, place)))
    if detail["type"] == "missing":
        field = model_at(model, place).model_fields.get(str(place[-1]))
        purpose = f": {field.description}" if field and field.description else ""
        return f"is missing{purpose}"
    text: str = detail["msg"].removeprefix("Value error, ")
    if detail["type"] == "value_error":  # written by us
        return text
    return f"{text[:1].lower()}{text[1:]}, found {_shown(detail['input'], place)}"


def _shown(value: Any, place: Place) -> str:
    """What was found, cut, and nothing that may be a secret; masked before it is cut, for a part is not recognised."""
    if any(is_secret_name(str(part)) for part in place):
        return MASK
    text = mask_secrets(repr(masked(value)))
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


def _is_branch(part: object) -> bool:
    """Pydantic names the branch of a union or a validator in the place, as `function-before[...]` or `list[str]`."""
    return isinstance(part, str) and ("[" in part or part in {"str", "int", "float", "bool", "constrained-str"})


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models_in(part)
