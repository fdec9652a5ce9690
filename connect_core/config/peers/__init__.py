"""Transforms as Kafka Connect and RocketMQ Connect configure them, to native ones. Pure: keys in, steps out.

What a transform does is done exactly, or refused by name with what to write instead; nothing is done nearly.
"""
