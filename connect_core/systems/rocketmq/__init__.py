"""Apache RocketMQ: queues read by offset, and written so that every message can be recognised again."""
