"""What the registry of systems says about options: which systems there are for a role, and the model of each.

The only module of this room that knows the registry; it sees option models, never drivers.
"""

from __future__ import annotations

from pydantic import BaseModel

from connect_core.sdk.plugin import Plugin, Role


def find(role: Role, system: str) -> type[BaseModel] | None:
    """The option model of a system in a role; None when there is no such system or it has no such side."""
    from connect_core.systems import SYSTEMS

    return SYSTEMS[system].options(role) if system in SYSTEMS else None


def systems(role: Role) -> list[str]:
    """The names of the systems that can be a source or a sink, sorted."""
    from connect_core.systems import SYSTEMS

    return sorted(name for name in SYSTEMS if find(role, name) is not None)


def plugin(system: str) -> Plugin | None:
    """What is known of a system; None when there is none of that name."""
    from connect_core.systems import SYSTEMS

    return SYSTEMS.get(system)


def plugins() -> list[Plugin]:
    """Of all systems."""
    from connect_core.systems import SYSTEMS

    return list(SYSTEMS.values())


def why_broken(system: str) -> str:
    """Why what a package brings under this name is no system, and what to do; empty for any other name."""
    from connect_core.systems import SYSTEMS

    return "" if system in SYSTEMS else str(SYSTEMS.broken.get(system, ""))


def release(system: str) -> str:
    """The package that brings a system, with its version."""
    from connect_core.systems import SYSTEMS

    return SYSTEMS.release(system)


def title(system: str) -> str:
    from connect_core.systems import SYSTEMS

    return SYSTEMS[system].title


def written_fields(model: type[BaseModel]) -> list[str]:
    """The options that a document may give, in the order of the model."""
    hidden = injected_fields(model)
    return [name for name in model.model_fields if name not in hidden]


def injected_fields(model: type[BaseModel]) -> frozenset[str]:
    """The fields that whoever runs a connector fills in, and no document gives."""
    from connect_core.systems import injected

    return injected(model)


def _marked(model: type[BaseModel], mark: str, value: object) -> list[str]:
    """The options whose `json_schema_extra` says this of them."""
    extras = ((name, field.json_schema_extra) for name, field in model.model_fields.items())
    return [name for name, extra in extras if isinstance(extra, dict) and extra.get(mark) == value]


def policy_fields(model: type[BaseModel]) -> list[str]:
    """The options that say what to do when something is not as expected, or who may do it. They change nothing of what
    a record becomes and where it goes, so no range pins them."""
    return _marked(model, "policy", True)


def needed_fields(model: type[BaseModel]) -> list[str]:
    """The options that have a default only since another one may stand in their place."""
    return _marked(model, "needed", True)


def access_fields(model: type[BaseModel]) -> frozenset[str]:
    """The options that say how the other side is reached: when they change it is still the same."""
    found: frozenset[str] = getattr(model, "ACCESS", frozenset())
    return found


def single_writer_fields(model: type[BaseModel]) -> list[str]:
    """The options that name what can have one writer only, and so must be another one for each stream."""
    return _marked(model, "single_writer", True)


def template_fields(model: type[BaseModel]) -> list[str]:
    """The options that hold a template which each record fills (`sdk.templates`)."""
    return _marked(model, "template", True)


def header_fields(model: type[BaseModel]) -> list[str]:
    """The options that hold texts by names of the reader's own, of which some are secrets: headers."""
    return _marked(model, "kind", "headers")


def address_fields(model: type[BaseModel]) -> list[str]:
    """The options that name servers, of which an installation may allow some (`allowed_hosts`)."""
    return _marked(model, "kind", "address") + database_fields(model)


def database_fields(model: type[BaseModel]) -> list[str]:
    """The options that hold the URL of a database: it names a file, or a server."""
    return _marked(model, "kind", "database")


def path_fields(model: type[BaseModel]) -> list[str]:
    """The options that name files, and so must be made absolute and stay under the configured roots."""
    return _marked(model, "kind", "path")
