"""RocketMQ as a data source of people's own Spark jobs (docs/spark-data-source.md). Connectors do not use it.

    spark.dataSource.register(RocketMQDataSource)
    spark.read.format("rocketmq").option("name_servers", "127.0.0.1:9876").option("topics", "orders").load()

A thin wrapper: the client is that of `rocketmq`, messages are decoded and encoded by `systems.rocketmq`.
"""

from connect_core.spark.data_source import RocketMQDataSource

__all__ = ["RocketMQDataSource"]
