"""The folder and the commands that tests of a server have."""

from tests.unit.api.native import server
from tests.unit.cli.conftest import applied, folder, waybill

__all__ = ["applied", "folder", "server", "waybill"]
