"""MQTT 3.1.1 and 5: a source that is pushed to, in sessions that the broker keeps."""
