"""What every test may use: `tests/servers.py`."""

pytest_plugins = ("tests.servers",)
