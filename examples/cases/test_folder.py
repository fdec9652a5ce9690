"""A CommitSink in its suite: the folder of "Write a sink"."""

import json

import pytest
from waybill_folder import Folder, Options

from connect_core.sdk.testing.commits import CommitContract
from connect_core.sdk.testing.sinks import SimpleCase


class FolderCase(SimpleCase):
    refused = b"two\nlines"
    unkept = frozenset({"null", "every byte", "line feed", "carriage return"})
    """A record is a line: one without a value is an empty one, and a value with a line feed is refused."""

    def __init__(self, folder):
        self.folder = folder

    def sink(self):
        return Folder(Options(folder=self.folder))

    def content(self, behind=0):
        commits = [json.loads(path.read_text()) for path in sorted((self.folder / "_commits").glob("*.json"))]
        names = [name for commit in commits for name in commit["files"]]
        return [line for name in names for line in (self.folder / name).read_bytes().split(b"\n")[:-1]][behind:]

    def commit_as_others(self):
        sink = self.sink()
        sink.prepare()
        sink.commit([], "others", "", sink.last("others").commit)


class TestTheFolder(CommitContract):
    @pytest.fixture
    def target(self, tmp_path):
        return FolderCase(tmp_path)
