"""What every test may use: real servers, homes on them, and the choice and record of faults."""

pytest_plugins = ("tests.servers", "tests.site", "tests.faults.rows")
