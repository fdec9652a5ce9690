"""Option models for people: a list for `waybill options`, and the page docs/options.md. Pure.

python -m connect_core.config.option_pages > docs/options.md
"""

from __future__ import annotations

import json
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ByteSize
from pydantic.fields import FieldInfo

from connect_core.config import option_models
from connect_core.config.document import ConnectorDocument
from connect_core.config.document_errors import parse_tolerance
from connect_core.config.document_parts import Endpoint
from connect_core.config.example_models import ExampleOutput, check_payload, check_reason
from connect_core.config.payloads import check_fields
from connect_core.config.references import is_secret_name
from connect_core.config.units import parse_bytes, parse_seconds, parse_share, show_bytes, show_seconds
from connect_core.errors import ConfigError
from connect_core.sdk.plugin import ROLES

DOCUMENT = "connector"


@dataclass(frozen=True)
class Option:
    """One key a document may give. `role` is source or sink, or empty for a key of the document itself."""

    system: str
    role: str
    name: str
    type: str
    required: bool
    default: str
    description: str
    examples: tuple[str, ...]
    secret: bool
    path: bool


def described(system: str) -> list[Option]:
    """Every option of a system, those of its source first; `connector`: every key of the document.

    Raises ConfigError, naming the systems there are, for any other name.
    """
    if system == DOCUMENT:
        return list(_options(ConnectorDocument, DOCUMENT, ""))
    known = sorted({name for role in ROLES for name in option_models.systems(role)})
    if why := option_models.why_broken(system):
        raise ConfigError(why)
    if system not in known:
        raise ConfigError(
            f'There is no system "{system}"',
            next_step=f"There are {', '.join(known)}; `{DOCUMENT}` shows the keys of the document",
        )
    models = [(role, option_models.find(role, system)) for role in ROLES]
    return [option for role, model in models if model for option in _options(model, system, role)]


def of_model(model: type[BaseModel], of: str) -> list[Option]:
    """Of what is no system."""
    return list(_options(model, of, ""))


def page() -> str:
    """The whole of docs/options.md."""
    parts = [_HEAD, _section("The document", described(DOCUMENT))]
    for name in sorted({name for role in ROLES for name in option_models.systems(role)}):
        for role in ROLES:
            if model := option_models.find(role, name):
                title = f"{option_models.title(name)}: `{name}` as a {role}"
                parts.append(_section(title, list(_options(model, name, role)), _summary(model)))
    return "\n".join(parts)


_HEAD = """# Options

Generated from the option models (`make docs`); do not edit. `waybill options SYSTEM [KEY]` shows the same.

Durations are written as `500ms`, `30s`, `5m`, `2h`, `1d` or a number of seconds; sizes as `64KiB`, `1GiB`, `10MB` or a
number of bytes. Any option may hold a reference: `${env:NAME}`, `${file:PATH#KEY}`, `${stack:name_servers}`,
`${stack:mqtt_port}`. Secrets must be references. `connection: NAME` takes further options from
`conf/connections/NAME.yaml`.
"""


def _section(title: str, options: list[Option], summary: str = "") -> str:
    rows = [
        f"| `{o.name}` | {_cell(o.type)} | {_cell('**required**' if o.required else o.default)} | {_cell(_text(o))} |"
        for o in options
    ]
    intro = f"{summary}\n\n" if summary else ""
    return f"## {title}\n\n{intro}| option | type | default | meaning |\n|---|---|---|---|\n" + "\n".join(rows) + "\n"


def _text(option: Option) -> str:
    examples = f" Example: {', '.join(f'`{example}`' for example in option.examples)}." if option.examples else ""
    secret = " A secret: write a reference." if option.secret else ""
    return f"{option.description.rstrip('.')}.{examples}{secret}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _summary(model: type[BaseModel]) -> str:
    return " ".join((model.__doc__ or "").split())


# ------------------------------------------------------------------------------------------------------------- options


def _options(model: type[BaseModel], system: str, role: str, prefix: str = "") -> Iterator[Option]:
    names = option_models.written_fields(model)
    for name in names:
        field = model.model_fields[name]
        inner = _model_in(field.annotation)
        if inner is not None and inner is not Endpoint:
            yield from _options(inner, system, role, f"{prefix}{name}.")
            continue
        option = _option(field, system, role, f"{prefix}{name}", name in option_models.path_fields(model))
        yield replace(option, required=option.required or name in option_models.needed_fields(model))
        if (item := _item_model(field.annotation)) is not None:
            each = ".NAME" if get_origin(field.annotation) is dict else "[]"
            yield from _options(item, system, role, f"{prefix}{name}{each}.")


def _option(field: FieldInfo, system: str, role: str, name: str, is_path: bool) -> Option:
    return Option(
        system=system,
        role=role,
        name=name,
        type="path" if is_path else _type_words(_annotation(field)),
        required=field.is_required(),
        default=_default_words(field),
        description=_description(field),
        examples=tuple(_example(example) for example in field.examples or ()),
        secret=is_secret_name(name),
        path=is_path,
    )


def _example(value: Any) -> str:
    """As YAML writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value) if isinstance(value, list) else str(value)


def _annotation(field: FieldInfo) -> Any:
    return Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation


def _description(field: FieldInfo) -> str:
    """The field's, or the one inside `Annotated[...] | None`."""
    if field.description:
        return field.description
    inner = (extra for part in _parts(field.annotation) for extra in get_args(part)[1:] if isinstance(extra, FieldInfo))
    return next((extra.description for extra in inner if extra.description), "")


def _parts(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else (annotation,)


def _type_words(annotation: Any) -> str:
    parts = [part for part in _parts(annotation) if part is not types.NoneType]
    if len(parts) > 1:
        return " or ".join(dict.fromkeys(_type_words(part) for part in parts))
    (only,) = parts
    origin, inner = get_origin(only), get_args(only)
    if origin is Annotated:
        return _unit(only) or _type_words(inner[0])
    if only is not annotation and origin is not None and origin is not Literal:
        return _type_words(only)
    if origin is Literal:
        return ", ".join(str(value).lower() if isinstance(value, bool) else str(value) for value in inner)
    if origin in (list, tuple, set, frozenset):
        return f"list of {_type_words(inner[0])}"
    return _WORDS.get(only, "mapping" if origin is dict else getattr(only, "__name__", str(only)).lower())


_WORDS: dict[Any, str] = {
    Endpoint: "one system with its options",
    ExampleOutput: "output",
    str: "text",
    int: "number",
    float: "number",
    bool: "true, false",
    ByteSize: "size",
    Any: "any",
}


def _unit(annotation: Any) -> str:
    functions = [getattr(extra, "func", None) for extra in get_args(annotation)[1:]]
    return next((words for function, words in _UNITS.items() if function in functions), "")


_UNITS: dict[Any, str] = {
    parse_seconds: "duration",
    parse_bytes: "size",
    parse_share: "percentage",
    parse_tolerance: "none, all or number",
    check_fields: "mapping or infer",
    check_payload: "text, mapping or list",
    check_reason: "true or text",
}


def _default_words(field: FieldInfo) -> str:
    if field.is_required():
        return ""
    value = field.get_default(call_default_factory=True, validated_data={})
    words = _type_words(_annotation(field))
    if value is None or value == "":
        return ""
    if words == "size":
        return show_bytes(int(value))
    if words == "duration":
        return show_seconds(value)
    return "none" if words.startswith("none") else _example(list(value) if isinstance(value, tuple) else value)


def _item_model(annotation: Any) -> type[BaseModel] | None:
    """Of a list of mappings, or of a mapping of them."""
    return _model_in(get_args(annotation)[-1]) if get_origin(annotation) in (list, dict) else None


def _model_in(annotation: Any) -> type[BaseModel] | None:
    return next((p for p in _parts(annotation) if isinstance(p, type) and issubclass(p, BaseModel)), None)


if __name__ == "__main__":
    sys.stdout.write(page())
