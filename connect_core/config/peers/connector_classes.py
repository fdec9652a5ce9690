"""Every class of connectors in the repository of RocketMQ Connect, and what there is for it here. Pure.

The table in docs/coming-from-rocketmq-connect.md is made of this one, and a document that names a class which is not
taken gets its row. Source: `connectors/` and `rocketmq-connect-sample/` of apache/rocketmq-connect, commit 85da68c;
classes that are abstract are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

_PACKAGE = "org.apache.rocketmq.connect."


class PeerConnector(NamedTuple):
    """`here` says whether its documents are `taken`, whether `another way` does the same, or whether one is
    `planned`, or `not planned`, and `why`. `words` are what takes its place."""

    name: str
    here: Literal["taken", "another way", "planned", "not planned"]
    words: str
    why: str = ""

    @property
    def row(self) -> str:
        """What is said to who names it and does not get it."""
        return f"{self.here} ({self.why}); {self.words}" if self.why else f"{self.here}: {self.words}"


_COPIES = "a native document from RocketMQ to RocketMQ copies whole messages: `waybill init rocketmq rocketmq`"
_GROUPS = "`groups` of such a document, or `waybill groups translate`"
_SPARK = "a Spark job reads topics, or appends to them, with the data source `rocketmq`"
_INSIDE = "the class of Kafka Connect inside stands for itself, where it is taken: `waybill import kafka-connect`"
_OWN_SOURCE = "a source of your own can be written: docs/write-a-source.md"
_OWN_SINK = "a sink of your own can be written: docs/write-a-sink.md"

_LOG = "each such log of changes needs a reader of its own"
_OF_SPARK = "Spark has it already"
_PROTOCOL = "of message protocols, MQTT alone is spoken here"
_BLIND = "its target cannot be read again, so no receipt could be verified"
_FILES = "files of other hosts need a mount, and no protocol"
_CLOUD = "a service of one cloud"
_OUTSIDE = "outside of what is replicated here: RocketMQ, MQTT, files, tables"
"""Why one is not planned."""

CLASSES: tuple[PeerConnector, ...] = (
    PeerConnector(f"{_PACKAGE}file.FileSourceConnector", "taken", "`file` as the source"),
    PeerConnector(f"{_PACKAGE}file.FileSinkConnector", "taken", "`file` as the target"),
    PeerConnector(f"{_PACKAGE}mqtt.connector.MqttSourceConnector", "taken", "`mqtt` as the source"),
    PeerConnector(f"{_PACKAGE}mqtt.connector.MqttSinkConnector", "taken", "`mqtt` as the target"),
    PeerConnector(
        f"{_PACKAGE}jdbc.source.JdbcSourceConnector",
        "taken",
        "`mysql` or `postgresql` as the source: tables, or a `query`",
    ),
    PeerConnector(f"{_PACKAGE}jdbc.sink.JdbcSinkConnector", "taken", "`mysql`, `postgresql` or `sql` as the target"),
    PeerConnector(
        f"{_PACKAGE}debezium.postgres.DebeziumPostgresConnector", "taken", "`postgresql_changes` as the source"
    ),
    PeerConnector(f"{_PACKAGE}debezium.mysql.DebeziumMysqlConnector", "taken", "`mysql_changes` as the source"),
    PeerConnector(f"{_PACKAGE}debezium.oracle.DebeziumOracleConnector", "not planned", _OWN_SOURCE, _LOG),
    PeerConnector(f"{_PACKAGE}debezium.sqlserver.DebeziumSqlServerConnector", "not planned", _OWN_SOURCE, _LOG),
    PeerConnector(f"{_PACKAGE}debezium.mongodb.DebeziumMongoDBConnector", "not planned", _OWN_SOURCE, _LOG),
    PeerConnector("org.apache.rocketmq.replicator.ReplicatorSourceConnector", "another way", _COPIES),
    PeerConnector("org.apache.rocketmq.replicator.RmqSourceReplicator", "another way", _COPIES),
    PeerConnector("org.apache.rocketmq.replicator.ReplicatorCheckpointConnector", "another way", _GROUPS),
    PeerConnector("org.apache.rocketmq.replicator.RmqMetaReplicator", "another way", _GROUPS),
    PeerConnector(
        "org.apache.rocketmq.replicator.ReplicatorHeartbeatConnector",
        "another way",
        "`waybill lag` and the metrics tell how far a copy is behind",
    ),
    PeerConnector(f"{_PACKAGE}rocketmq.RocketMQSourceConnector", "another way", _COPIES),
    PeerConnector(f"{_PACKAGE}rocketmq.RocketMQSinkConnector", "another way", _COPIES),
    PeerConnector(f"{_PACKAGE}kafka.connector.KafkaRocketmqSourceConnector", "another way", _INSIDE),
    PeerConnector(f"{_PACKAGE}kafka.connector.KafkaRocketmqSinkConnector", "another way", _INSIDE),
    PeerConnector(f"{_PACKAGE}kafka.connector.KafkaSourceConnector", "planned", _SPARK),
    PeerConnector(f"{_PACKAGE}hudi.connector.HudiSinkConnector", "planned", _SPARK),
    PeerConnector(f"{_PACKAGE}deltalake.connector.DeltalakeSinkConnector", "planned", _SPARK),
    PeerConnector(f"{_PACKAGE}hive.connector.HiveSourceConnector", "not planned", _SPARK, _OF_SPARK),
    PeerConnector(
        f"{_PACKAGE}rabbitmq.connector.RabbitmqSourceConnector",
        "not planned",
        f"a broker that also speaks MQTT is read by the source `mqtt`; {_OWN_SOURCE}",
        _PROTOCOL,
    ),
    PeerConnector(
        f"{_PACKAGE}activemq.connector.ActivemqSourceConnector",
        "not planned",
        f"a broker that also speaks MQTT is read by the source `mqtt`; {_OWN_SOURCE}",
        _PROTOCOL,
    ),
    PeerConnector(f"{_PACKAGE}redis.connector.RedisSourceConnector", "planned", _OWN_SOURCE),
    PeerConnector("org.apache.connect.mongo.connector.MongoSourceConnector", "not planned", _OWN_SOURCE, _OUTSIDE),
    PeerConnector(f"{_PACKAGE}elasticsearch.connector.ElasticsearchSourceConnector", "planned", _OWN_SOURCE),
    PeerConnector(f"{_PACKAGE}elasticsearch.connector.ElasticsearchSinkConnector", "planned", _OWN_SINK),
    PeerConnector(f"{_PACKAGE}cassandra.connector.CassandraSourceConnector", "not planned", _OWN_SOURCE, _OUTSIDE),
    PeerConnector(f"{_PACKAGE}cassandra.connector.CassandraSinkConnector", "not planned", _OWN_SINK, _OUTSIDE),
    PeerConnector(f"{_PACKAGE}doris.DorisSinkConnector", "not planned", _OWN_SINK, _OUTSIDE),
    PeerConnector(f"{_PACKAGE}hbase.sink.HBaseSinkConnector", "not planned", _OWN_SINK, _OUTSIDE),
    PeerConnector(f"{_PACKAGE}iotdb.connector.IotdbSourceConnector", "not planned", _OWN_SOURCE, _OUTSIDE),
    PeerConnector(f"{_PACKAGE}http.HttpSinkConnector", "not planned", _OWN_SINK, _BLIND),
    PeerConnector(
        f"{_PACKAGE}http.sink.SftpSourceConnector",
        "not planned",
        f"files on this host are `file`; {_OWN_SOURCE}",
        _FILES,
    ),
    PeerConnector(
        f"{_PACKAGE}http.sink.SftpSinkConnector", "not planned", f"files on this host are `file`; {_OWN_SINK}", _FILES
    ),
    PeerConnector(f"{_PACKAGE}mns.source.MNSSourceConnector", "not planned", _OWN_SOURCE, _CLOUD),
    PeerConnector(f"{_PACKAGE}eventbridge.sink.EventBridgeSinkConnector", "not planned", _OWN_SINK, _BLIND),
    PeerConnector(f"{_PACKAGE}fc.sink.FcSinkConnector", "not planned", _OWN_SINK, _BLIND),
    PeerConnector(f"{_PACKAGE}oss.sink.OssSinkConnector", "not planned", _OWN_SINK, _CLOUD),
    PeerConnector(f"{_PACKAGE}dingtalk.sink.DingTalkSinkConnector", "not planned", _OWN_SINK, _BLIND),
)


def peer_class(given: str) -> PeerConnector | None:
    """By its name, which may lack the package, or `Connector` at its end."""
    wanted = {given, f"{given}Connector"}
    return next((one for one in CLASSES if wanted & {one.name, one.name.rpartition(".")[2]}), None)


def page_rows() -> Iterator[str]:
    """The table as the page has it."""
    yield "| class of RocketMQ Connect | here | why it is not planned | what takes its place |"
    yield "|---|---|---|---|"
    for one in CLASSES:
        words = one.words
        for page in ("write-a-source", "write-a-sink"):
            words = words.replace(f"docs/{page}.md", f"[how]({page}.md)")
        yield f"| `{one.name}` | {one.here} | {one.why} | {words} |"
