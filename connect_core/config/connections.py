"""Connections: what several documents say about one cluster, once, in `connections/NAME.yaml` as `{SYSTEM: {options}}`.

Looked up beside the document (`connections/` in its folder or the one above) and in `conf/connections/` of the home's
folder. An option that the document gives itself wins. `main` is built in, the running local stack, until a file of
that name says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from connect_core.config import option_models
from connect_core.config.faults import nearest
from connect_core.config.home import folder_of
from connect_core.config.written import read_file
from connect_core.errors import ConfigError
from connect_core.sdk.values import Json

KEY = "connection"


@dataclass(frozen=True)
class Connection:
    """Options shared by all documents that name it. `file` is None for the built-in one."""

    name: str
    system: str
    options: Json
    file: Path | None


def folders_for(document: Path | None, home: Path | None) -> tuple[Path, ...]:
    """Where the connections of a document are looked for, in order; `document` is its file while there is one."""
    beside = (document.resolve().parent, document.resolve().parent.parent) if document else ()
    return (*(folder / "connections" for folder in beside), folder_of(home) / "conf" / "connections")


def find(name: str, folders: tuple[Path, ...]) -> Connection:
    """The connection of that name; a name that ends in .yaml is a path. Raises ConfigError when there is none."""
    if name.endswith((".yaml", ".yml")):
        return _load(Path(name).stem, Path(name))
    if "/" in name or name.startswith("."):
        raise ConfigError(f"{name!r} cannot name a connection")
    for folder in folders:
        if (file := folder / f"{name}.yaml").is_file():
            return _load(name, file)
    if built_in := _built_in().get(name):
        return built_in
    raise ConfigError(f'there is no connection "{name}" in {_shown(folders)}' + nearest(name, _known(folders)))


def _load(name: str, file: Path) -> Connection:
    documents = read_file(file)
    data = documents[0].data if len(documents) == 1 else None
    if not isinstance(data, dict) or len(data) != 1 or not isinstance(next(iter(data.values())), dict):
        raise ConfigError(
            f"the connection {file} must hold one system with its options, as {{rocketmq: {{name_servers: …}}}}"
        )
    system, options = next(iter(data.items()))
    return Connection(name, str(system), options, file.resolve())


def _built_in() -> dict[str, Connection]:
    return {
        name: Connection(name, plugin.name, options, None)
        for plugin in option_models.plugins()
        for name, options in plugin.connections.items()
    }


def _known(folders: tuple[Path, ...]) -> set[str]:
    return {file.stem for folder in folders for file in folder.glob("*.yaml")} | _built_in().keys()


def _shown(folders: tuple[Path, ...]) -> str:
    return " or ".join(dict.fromkeys(map(str, folders)))
