"""The local stack. See `lifecycle.py`."""
