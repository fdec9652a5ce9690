"""Where the workers of RocketMQ Connect keep their connectors: in a folder, or in topics of a cluster; as options say
it, or the file that a worker is started with (`connect-standalone.conf`, `connect-distributed.conf`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
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
class PeerWorkers:
    """`configs` and `positions` are names of topics; empty ones mean files in the folder `store`."""

    store: Path | None = None
    cluster: Json | None = None
    configs: str = ""
    positions: str = ""


def named(
    *, store: Path | None, namesrv: str, config_topic: str, position_topic: str, user: str, password: str
) -> PeerWorkers:
    """By options. Raises ConfigError where they do not say one place."""
    if bool(store) == bool(namesrv):
        raise ConfigError("Say where the workers keep their connectors: --store, --namesrv, or --worker-config")
    if store is not None:
        return PeerWorkers(store)
    if bool(user) != bool(password):
        raise ConfigError("--access-key and --secret-key go together")
    if password and not is_reference(password):
        step = "Write a reference: ${env:NAME} or ${file:PATH#KEY}"
        raise ConfigError("The secret key is a secret in plain text", where="--secret-key", next_step=step)
    signed = {"user": user, "password": password} if user else {}
    cluster = reveal({"name_servers": namesrv, **signed})
    return PeerWorkers(None, cluster, config_topic or CONFIG_TOPIC, position_topic or POSITION_TOPIC)


def of_file(file: Path, *, store: Path | None, namesrv: str, config_topic: str, position_topic: str) -> PeerWorkers:
    """As a worker reads its file; what is named beside it counts more."""
    said = _read(file)
    in_topics = {
        kind: said.get(f"{kind}ManagementService", "").rpartition(".")[2].startswith(_IN_TOPICS)
        for kind in ("config", "position")
    }
    folder = store or Path(said.get("storePathRootDir") or Path.home() / "connectorStore")
    cluster = None
    if any(in_topics.values()):
        cluster = _cluster(said, namesrv, file)
    return PeerWorkers(
        folder,
        cluster,
        (config_topic or said.get("configStoreTopic") or CONFIG_TOPIC) if in_topics["config"] else "",
        (position_topic or said.get("positionStoreTopic") or POSITION_TOPIC) if in_topics["position"] else "",
    )


def _cluster(said: Mapping[str, str], namesrv: str, file: Path) -> Json:
    servers = namesrv or said.get("namesrvAddr", "")
    if not servers:
        step = "Name them with --namesrv: its worker had them from NAMESRV_ADDR"
        raise ConfigError("The file names no namesrvAddr", where=str(file), next_step=step)
    if said.get("aclEnable", "").lower() != "true":
        return {"name_servers": servers}
    remember(said.get("secretKey", ""), secret=True)
    return {"name_servers": servers, "user": said.get("accessKey", ""), "password": said.get("secretKey", "")}


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
