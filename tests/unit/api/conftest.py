"""The folder and the document that tests of commands have."""

from tests.unit.cli.conftest import applied, folder, waybill

__all__ = ["applied", "folder", "waybill"]
