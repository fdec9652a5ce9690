"""Whatever documents may name: systems as sources and sinks, formats, steps, functions, and classes of peers; ours, and
those that installed packages bring, the broken ones with why. And packages that were replaced, loaded anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from connect_core import __version__, packages
from connect_core.config import option_pages
from connect_core.config.flat import hub
from connect_core.config.option_pages import Option
from connect_core.config.peers.classes import PeerClass, converters, transforms_and_predicates
from connect_core.config.steps_and_formats import FORMATS_READ, FORMATS_WRITTEN, STEPS, brought_format, format_options
from connect_core.errors import ContractBroken
from connect_core.packages import Brought
from connect_core.sdk.plugin import ROLES, Role
from connect_core.sdk.values import Json
from connect_core.service import callers
from connect_core.service.plugin_names import of_name
from connect_core.systems import SYSTEMS

KINDS = ("source", "sink", "system", "format", "transform", "converter", "predicate")
"""A system of which nobody knows the ends, as it is broken, is of the kind `system`."""
_OURS = "waybill"
_FUNCTION = "A function of rows, which the step python names"
_UNITS = {"duration": "seconds", "size": "bytes", "percentage": "percent"}


@dataclass(frozen=True)
class Listed:
    """One that documents may name. `classes` are what peers call it in flat documents. `installed` is the version of
    its package that is installed now, which is another one than `version` where it was replaced since this process has
    loaded it."""

    kind: str
    name: str
    title: str
    package: str
    version: str
    classes: Sequence[str] = ()
    options: Sequence[Json] = ()
    error: str = ""
    abilities: Sequence[str] = ()
    installed: str = ""


def listed(name: str = "") -> list[Json]:
    """All, or those of a name, which may be that of a class. Raises ConfigError where there is none of it."""
    callers.require("viewer")
    order = {kind: place for place, kind in enumerate(KINDS)}
    return of_name(_told(sorted(_all(), key=lambda one: (order[one.kind], one.name))), name)


def brought() -> list[Listed]:
    """Those of installed packages, ours not among them."""
    callers.require("viewer")
    return [one for one in _all() if one.package != _OURS]


def reload() -> Json:
    """Has this process look up packages anew: what was replaced since it loaded them, and what is broken now. Runs are
    begun by processes of their own, or look by themselves."""
    callers.require("operator")
    replaced = [one._asdict() for one in SYSTEMS.reload()]
    return {"reloaded": replaced, "broken": _told(one for one in _all() if one.error)}


def _told(found: Iterable[Listed]) -> list[Json]:
    now = {one.before: one.now.rpartition(" ")[2] for one in packages.replaced()}
    return [vars(one) | {"installed": now.get(f"{one.package} {one.version}", one.version)} for one in found]


def _all() -> Iterator[Listed]:
    yield from _systems()
    yield from _formats()
    for name in STEPS:
        yield Listed("transform", name, "A step of transforms", _OURS, __version__)
    yield from _functions()
    for one in (*transforms_and_predicates(), *converters()):
        yield Listed(one.kind, one.name.rpartition(".")[2], "", _OURS, __version__, [one.name], _keys(one))


def _systems() -> Iterator[Listed]:
    outside = packages.brought(packages.SYSTEMS)
    for name, plugin in SYSTEMS.items():
        package, _, version = SYSTEMS.release(name).rpartition(" ")
        for role in ROLES:
            if plugin.options(role) is not None:
                of = (role, name, plugin.title, package, version, _classes(name, role))
                try:
                    options = [_option(one) for one in option_pages.described(name) if one.role == role]
                except Exception as error:  # of a model of another package anything may be raised
                    yield Listed(*of, error=str(outside[name].broken(f"{type(error).__name__}: {error}").what))
                    continue
                yield Listed(*of, options, abilities=sorted(plugin.abilities))
    for name, why in SYSTEMS.broken.items():
        yield _broken("system", outside[name], why)


def _release(group: str, name: str) -> tuple[str, str]:
    """Of what is loaded: the package may be replaced already."""
    package, _, version = packages.releases(group)[name].rpartition(" ")
    return package, version


def _classes(system: str, role: Role) -> list[str]:
    """The hub is the other end of each class of another system."""
    if system == hub():
        return []
    return [f"{one.package}{one.name}" for one in SYSTEMS[system].flat if one.role == role]


def _broken(kind: str, one: Brought, why: ContractBroken) -> Listed:
    return Listed(kind, one.name, "", one.package, one.version, error=why.what)


def _formats() -> Iterator[Listed]:
    for name in FORMATS_READ:
        ways = "read and written" if name in FORMATS_WRITTEN else "read"
        options = [_option(one) for one in format_options(name)]
        yield Listed("format", name, f"A format of payloads, {ways}", _OURS, __version__, options=options)
    for name, one in packages.brought(packages.FORMATS).items():
        try:
            found = brought_format(one)
            release = _release(packages.FORMATS, name)
            yield Listed("format", name, found.title, *release, options=[_option(each) for each in found.options])
        except ContractBroken as why:
            yield _broken("format", one, why)


def _functions() -> Iterator[Listed]:
    from connect_core.sdk.row_functions import RowFunction

    for name, one in packages.brought(packages.FUNCTIONS).items():
        try:
            packages.loaded(one, RowFunction)
            yield Listed("transform", name, _FUNCTION, *_release(packages.FUNCTIONS, name))
        except ContractBroken as why:
            yield _broken("transform", one, why)


def _option(one: Option) -> Json:
    return {
        "name": one.name,
        "type": one.type,
        "required": one.required,
        "default": one.default,
        "doc": one.description,
        "unit": _UNITS.get(one.type, ""),
        "importance": "high" if one.required else "low",
        "secret": one.secret,
    }


def _keys(one: PeerClass) -> list[Json]:
    return [
        {
            "name": key,
            "type": "text",
            "required": must,
            "default": "",
            "doc": "",
            "unit": "",
            "importance": "high" if must else "low",
            "secret": False,
        }
        for key, must in one.keys.items()
    ]
