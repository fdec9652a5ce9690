"""The command line of another machine, on a real server with a login and TLS: a connector from its document to its
verification, and a server that is killed in the middle of a run."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.faults.kit.processes import is_alive, wait_for
from tests.site import Site
from tests.system.replication.test_rest_api import LINES, lines, stopped_worker

DOCUMENT = "version: 1\nname: copy\nsource: {file: {path: in.log}}\nsink: {file: {path: out.log}}\n"


@pytest.fixture
def site(bare_site: Site) -> Site:
    """The host of the server, with a log, a certificate and two tokens."""
    bare_site.settings["WAYBILL_ENGINE"] = "inline"
    (bare_site.folder / "in.log").write_text("".join(f"{line}\n" for line in LINES))
    whose = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-days", "2"]
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    made = ["openssl", "req", "-x509", *curve, *whose, "-keyout", "key.pem", "-out", "cert.pem"]
    subprocess.run(made, cwd=bare_site.folder, check=True, capture_output=True)
    for name, role in (("desk", "admin"), ("screen", "viewer")):
        token = bare_site.waybill("tokens", "create", name, "--role", role)
        (bare_site.folder / f"{name}.token").write_text(token)
    return bare_site


@contextmanager
def served(site: Site, port: str = "0") -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Its address, until the block ends or somebody kills it."""
    tls = ("--tls-certificate", "cert.pem", "--tls-key", "key.pem")
    with site.start("serve", "--login", "--gets-change", "--port", port, *tls) as process:
        assert process.stderr is not None
        url = re.search(r"https://127\.0\.0\.1:\d+", process.stderr.readline())
        assert url is not None
        try:
            yield url[0], process
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)


def desk(site: Site, folder: Path, url: str, token: str = "desk") -> Site:
    """A machine that has neither home nor ledger of the other one."""
    folder.mkdir(exist_ok=True)
    made = Site(folder, "", [], f"sqlite:///{folder}/none/ledger.db")
    made.settings = {
        "WAYBILL_SERVER": url,
        "WAYBILL_TOKEN_FILE": str(site.folder / f"{token}.token"),
        "WAYBILL_CA_FILE": str(site.folder / "cert.pem"),
    }
    (folder / "copy.yaml").write_text(DOCUMENT)
    return made


def test_a_connector_from_another_machine(site: Site, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("desk")
    with served(site) as (url, _):
        mine = desk(site, folder, url)
        assert mine.waybill("apply", "copy.yaml").startswith("copy: created\n")
        assert f"copy: {len(LINES)} delivered" in mine.waybill("run", "copy")
        for words in (("receipts",), ("connectors", "show", "copy"), ("offsets", "show", "copy"), ("verify", "copy")):
            assert mine.waybill(*words) == site.waybill(*words)
        assert mine.json("status")["connectors"] == site.json("status")["connectors"]
        assert site.json("connectors", "show", "copy", "--revisions")["revisions"][0]["who"].startswith("token desk ")
        looks = desk(site, folder, url, "screen")
        assert "has the role viewer, and this needs operator" in looks.waybill("run", "copy", code=6)
        assert json.loads(mine.waybill("rmqconnect", "getClusterInfo"))["body"] == ["inline"]
        stranger = desk(site, folder, url)
        del stranger.settings["WAYBILL_CA_FILE"]
        refused = stranger.waybill("connectors", "list", code=2)
        assert "The certificate of the server is not trusted" in refused
        assert "--ca FILE" in refused
        plain = desk(site, folder, url.replace("https:", "http:"))
        assert "The server does not answer" in plain.waybill("connectors", "list", code=3)
    assert lines(site.folder / "out.log") == LINES
    assert not (folder / ".waybill").exists()


def test_a_server_that_is_killed_in_the_middle_is_told_and_the_next_command_continues(
    site: Site, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with served(site) as (url, process):
        mine = desk(site, tmp_path_factory.mktemp("desk"), url)
        mine.waybill("apply", "copy.yaml")
        site.fault("batch-written", "stop")
        with mine.start("run", "copy") as run:
            worker = stopped_worker(site)
            process.send_signal(signal.SIGKILL)
            process.wait(60)
            _, told = run.communicate(timeout=120)
        assert run.returncode == 3
        assert "The server does not answer" in told
        assert "of connector copy was at work" in told
        assert "Run the command again: the next run continues where this one stopped" in told
    wait_for(lambda: not is_alive(worker), "the worker ends with the operation, and that with its server")
    with served(site, url.rpartition(":")[2]):
        assert "copy: " in mine.waybill("run", "copy")
        assert f"{len(LINES)} records looked for" in mine.waybill("verify", "copy")
    assert lines(site.folder / "out.log") == LINES
