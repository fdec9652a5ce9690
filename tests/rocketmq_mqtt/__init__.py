"""A stand-in for RocketMQ-MQTT, the broker of Apache rocketmq-mqtt, whose parts no registry has.

Made from reading its source (version 1.0.2-SNAPSHOT of 2025-10-28), without any of its code, and compared with a real
one on RocketMQ 5.1.4: the same packets in the same order, the same messages lost. What it copies, and from where:

    what it does                                                      read in
    MQTT 3.1.1 alone; to anything else it does not answer             MqttServer, Netty's MqttDecoder
    CONNACK never says that a session is present                      MqttMessageFactory
    PUBLISH never has DUP nor the retain flag                         MqttMessageFactory, PushAction
    two connections with one client id live side by side              SessionLoopImpl
    subscriptions end with the connection, places in queues stay,     SubscribeProcessor, LmqOffsetStoreManager,
    stored each 5 s and when a connection ends                        SessionLoopImpl
    of each connection 32 messages count as acknowledged when sent    RetryDriver.mountPublish, ConnectConf
    what is not acknowledged is sent once more after 3 s, then goes   RetryDriver
    to a retry queue, and comes from there under a new id
    what was sent 15 times from a retry queue is dropped              RetryDriver.saveRetryQueue
    packet ids count up, from 1 when the broker starts                MqttMsgId
    publishes in flight are stored in any order                       AuthManagerSample, UpstreamHookManagerImpl
    no answer: an unknown first level, a retained message without     FirstTopicManager, RetainedMsgClient,
    meta nodes, a packet above 64 KiB                                 ConnectConf.maxPacketSizeInByte
    a filter with + or # gets what comes while it is configured       WildcardManager, MetaPersistManagerSample
    the password is the client id, signed                             AuthManagerSample, HmacSHA1Util
    no word of a client for one and a half times its keep-alive,      ChannelInfo.isExpired,
    looked at after 10 s: the connection ends                         DefaultChannelManager.doPing
    how a message is stored as one of RocketMQ                        LmqQueueStoreManager, Constants

What it leaves out: QoS 2 to subscribers, wills, retained messages with meta nodes, shared subscriptions, messages from
client to client, several nodes.
"""
