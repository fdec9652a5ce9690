"""A ReceivedSource in its suite: the folder of "Write a source"."""

import pytest
from waybill_tray import Options, Tray

from connect_core.sdk.testing.received import ReceivedCase, ReceivedContract


class TrayCase(ReceivedCase):
    idle_timeout_s = 0  # a folder shows at once what is in it
    unkept = frozenset({"null"})  # a message is a file, which has content

    def __init__(self, folder):
        self.folder, self._count = folder, 0

    def source(self):
        return Tray(Options(folder=self.folder))

    def append(self, values):
        for value in values:
            draft = self.folder / ".draft.txt"
            draft.write_bytes(value)
            draft.rename(self.folder / f"{self._count:06}.txt")
            self._count += 1


class TestTheTray(ReceivedContract):
    @pytest.fixture
    def system(self, tmp_path):
        return TrayCase(tmp_path)
