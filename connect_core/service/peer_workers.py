"""Where the workers of RocketMQ Connect keep their connectors: in a folder, or in topics of a cluster; as options say
it, or the file that a worker is started with (`connect-standalone.conf`, `connect-distributed.conf`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from connect_core.config import java_properties
from connect_core.config.flat import hub
from connect_core.config.references import is_reference, reveal
from connect_core.errors import ConfigError
from connect_core.masking import remember
from connect_core.sdk.values import Json
from connect_core.sdk.whole_topic import WholeTopic
from connect_core.service import peer_store, peer_topics
from connect_core.service.stored_connectors import StoredConnector
from connect_core.systems import SYSTEMS

CONFIG_TOPIC, POSITION_TOPIC = "connector-config-topic", "connector-position-topic"
_IN_TOPICS = "RocketMq"
"""How the classes begin that keep nothing in files."""


@dataclass(frozen=True)
class Named:
    """What somebody names: `password` is a reference."""

    store: Path | None = None
    namesrv: str = ""
    config_topic: str = ""
    position_topic: str = ""
    user: str = ""
    password: str = ""


@dataclass(frozen=True)
class PeerWorkers:
    """`configs` and `positions` are names of topics; empty ones mean files in the folder `store`."""

    store: Path | None = None
    cluster: Json | None = field(default=None, repr=False)
    configs: str = ""
    positions: str = ""


def workers_of(named: Named) -> PeerWorkers:
    """Raises ConfigError where these do not say one place."""
    if bool(named.store) == bool(named.namesrv):
        raise ConfigError("Say where the workers keep their connectors: --store, --namesrv, or --worker-config")
    if named.store is not None:
        if named != Named(named.store):
            raise ConfigError("Topics and keys of a cluster mean nothing with --store")
        return PeerWorkers(named.store)
    cluster = {"name_servers": named.namesrv, **_access(named)}
    return PeerWorkers(None, cluster, named.config_topic or CONFIG_TOPIC, named.position_topic or POSITION_TOPIC)


def workers_of_file(file: Path, named: Named) -> PeerWorkers:
    """As a worker reads its file; what is named beside it counts more."""
    said = _read(file)
    in_topics = {
        kind: said.get(f"{kind}ManagementService", "").rpartition(".")[2].startswith(_IN_TOPICS)
        for kind in ("config", "position")
    }
    return PeerWorkers(
        named.store or Path(said.get("storePathRootDir") or Path.home() / "connectorStore"),
        _cluster(said, named, file) if any(in_topics.values()) else None,
        (named.config_topic or said.get("configStoreTopic") or CONFIG_TOPIC) if in_topics["config"] else "",
        (named.position_topic or said.get("positionStoreTopic") or POSITION_TOPIC) if in_topics["position"] else "",
    )


def _cluster(said: Mapping[str, str], named: Named, file: Path) -> Json:
    servers = named.namesrv or said.get("namesrvAddr", "")
    if not servers:
        step = "Name them with --namesrv: its worker had them from NAMESRV_ADDR"
        raise ConfigError("The file names no namesrvAddr", where=str(file), next_step=step)
    access = _access(named)
    if not access and said.get("aclEnable", "").lower() == "true":
        remember(said.get("secretKey", ""), secret=True)
        access = {"user": said.get("accessKey", ""), "password": said.get("secretKey", "")}
    return {"name_servers": servers, **access}


def _access(named: Named) -> Json:
    if bool(named.user) != bool(named.password):
        raise ConfigError("--access-key and --secret-key go together")
    if named.password and not is_reference(named.password):
        step = "Write a reference: ${env:NAME} or ${file:PATH#KEY}"
        raise ConfigError("The secret key is a secret in plain text", where="--secret-key", next_step=step)
    return reveal({"user": named.user, "password": named.password}) if named.user else {}


def _read(file: Path) -> Mapping[str, str]:
    try:
        return {key: value.strip() for _, key, value in java_properties.pairs(file.read_text(encoding="utf-8"))}
    except OSError as error:
        raise ConfigError(f"The file cannot be read: {error.strerror}", where=str(file)) from None
    except ValueError as error:
        raise ConfigError(f"This is no file of a worker: {error}", where=str(file)) from None


def connectors_of(workers: PeerWorkers) -> tuple[list[StoredConnector], list[str]]:
    """By name; and in words what is lacking. Raises ConfigError where there are none."""
    lacking: list[str] = []
    if workers.configs:
        kept = peer_topics.configurations(_topic(workers, workers.configs))
        found, lacking = kept.connectors, kept.lacking
        if not found and not lacking:
            step = "Name the topic of configurations: configStoreTopic there"
            raise ConfigError("There are no connectors in it", where=f"topic {workers.configs}", next_step=step)
    else:
        found = peer_store.configurations_in(_folder(workers))
    there = list(peer_store.positions_in(_folder(workers))) if not workers.positions else []
    if workers.positions:
        there, more = peer_topics.positions(_topic(workers, workers.positions))
        lacking = [*lacking, *more]
    return peer_topics.with_positions(found, there), lacking


def _folder(workers: PeerWorkers) -> Path:
    assert workers.store is not None
    return workers.store


def _topic(workers: PeerWorkers, topic: str) -> WholeTopic:
    read = SYSTEMS[hub()].whole_topic
    assert read is not None
    assert workers.cluster is not None
    return read(workers.cluster, topic)
