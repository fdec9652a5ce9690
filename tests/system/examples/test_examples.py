"""The packages under examples/, installed as anybody would: they move records, and a kill loses nothing."""

from __future__ import annotations

import base64
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.installing import install
from tests.page_code import code_of
from tests.site import Site
from tests.system.replication.test_rest import served

EXAMPLES = Path(__file__).parents[3] / "examples"
LINES = [b"line %d" % number for number in range(2_498)] + [b"\xff\xfe", b"\xfe\xff"]
"""The last two are not UTF-8: whoever replaces what cannot be decoded makes one text of both."""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which pip has put them."""
    folder = tmp_path_factory.mktemp("installed")
    packages = [str(path.parent) for path in EXAMPLES.glob("*/pyproject.toml")]
    assert len(packages) == 5
    options = ["--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--target", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, *packages], check=True, cwd=folder)
    return folder


@pytest.fixture
def site(bare_site: Site, installed: Path) -> Site:
    bare_site.settings["PYTHONPATH"] = str(installed)
    (bare_site.folder / "in.log").write_bytes(b"".join(line + b"\n" for line in LINES))
    return bare_site


def waybill(site: Site, *words: str) -> tuple[int, str]:
    engine = ["--engine", "inline"] if words[0] == "run" else []
    with site.start(*words, *engine) as process:
        out, err = process.communicate(timeout=120)
    return process.returncode, out + err


def apply(site: Site, source: dict[str, object], sink: dict[str, object], **others: object) -> None:
    document = {"version": 1, "name": "copy", "source": source, "sink": sink, "errors": {"tolerance": "all"}}
    (site.folder / "copy.yaml").write_text(json.dumps(document | others))
    code, told = waybill(site, "apply", "copy.yaml")
    assert code == 0, told


def receipts(site: Site) -> list[dict[str, int]]:
    code, told = waybill(site, "receipts", "copy", "--json")
    assert code == 0, told
    return json.loads(told)["receipts"]  # type: ignore[no-any-return]


class Service(ThreadingHTTPServer):
    """Keeps what is posted to it, and gives its events page by page."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.posted: list[bytes] = []
        self.events: list[dict[str, object]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/events"


class Handler(BaseHTTPRequestHandler):
    server: Service

    def do_POST(self) -> None:
        self.server.posted += map(base64.b64decode, json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self._answer({})

    def do_GET(self) -> None:
        query = parse_qs(urlsplit(self.path).query)
        first, limit = int(query.get("after", ["0"])[0]), int(query["limit"][0])
        events = self.server.events[first : first + limit]
        self._answer({"events": events, "cursor": str(first + len(events))})

    def _answer(self, content: object) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(content).encode())

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving() -> Iterator[Service]:
    with Service() as service:
        threading.Thread(target=service.serve_forever, daemon=True).start()
        yield service
        service.shutdown()


def rows(path: Path, table: str = "lines") -> list[bytes]:
    with closing(sqlite3.connect(path)) as database:
        return [value for (value,) in database.execute(f"SELECT value FROM {table} ORDER BY rowid")]


def test_a_simple_sink_posts_every_line(site: Site) -> None:
    with serving() as service:
        apply(site, {"file": {"path": "in.log"}}, {"webhook": {"url": service.url}})
        code, told = waybill(site, "run", "copy")
        assert code == 0, told
        assert service.posted == LINES
        assert sum(one["possible_duplicates"] for one in receipts(site)) == 0


def test_what_a_killed_run_has_posted_is_posted_again_and_counted(site: Site) -> None:
    with serving() as service:
        apply(site, {"file": {"path": "in.log"}}, {"webhook": {"url": service.url}})
        site.fault("executed", "kill")
        assert waybill(site, "run", "copy")[0] == -9
        code, told = waybill(site, "run", "copy")
        assert code == 0, told
        assert list(dict.fromkeys(service.posted)) == LINES
        assert sum(one["possible_duplicates"] for one in receipts(site)) == len(service.posted) - len(LINES) > 0


@pytest.mark.parametrize("step", ["batch-written", "before-receipt", "executed", "settled"])
def test_a_table_has_every_line_once_whatever_was_killed(site: Site, step: str) -> None:
    table = site.folder / "lines.db"
    apply(site, {"file": {"path": "in.log"}}, {"sqlite": {"path": str(table), "table": "lines"}})
    site.fault(step, "kill")
    assert waybill(site, "run", "copy")[0] != 0
    code, told = waybill(site, "run", "copy")
    assert code == 0, told
    assert rows(table) == LINES
    seen = receipts(site)
    assert sum(one["delivered"] + one["deduplicated"] for one in seen) == len(LINES)
    assert sum(one["possible_duplicates"] + one["duplicates"] for one in seen) == 0


def test_a_line_that_the_table_refuses_is_a_dead_letter(site: Site) -> None:
    table = site.folder / "lines.db"
    with closing(sqlite3.connect(table)) as database:
        checked = "value BLOB CHECK (value <> CAST('line 700' AS BLOB))"
        database.execute(f"CREATE TABLE lines (key TEXT, {checked}, headers TEXT, stored_at TEXT)")
    apply(site, {"file": {"path": "in.log"}}, {"sqlite": {"path": str(table), "table": "lines"}})
    code, told = waybill(site, "run", "copy")
    assert code == 0, told
    assert rows(table) == [line for line in LINES if line != b"line 700"]
    assert sum(one["rejected"] for one in receipts(site)) == 1
    assert "SQLITE_CONSTRAINT_CHECK" in waybill(site, "dead-letters", "list", "copy", "--json")[1]


def test_pages_of_events_are_read_once_also_when_a_run_is_killed(site: Site) -> None:
    table = site.folder / "events.db"
    with serving() as service:
        service.events = [{"id": number, "what": "login"} for number in range(1_234)]
        apply(site, {"pages": {"url": service.url, "page": 100}}, {"sqlite": {"path": str(table), "table": "events"}})
        site.fault("executed", "kill")
        assert waybill(site, "run", "copy")[0] == -9
        service.events += [{"id": number, "what": "logout"} for number in range(1_234, 2_000)]
        code, told = waybill(site, "run", "copy")
        assert code == 0, told
        code, told = waybill(site, "run", "copy")
        assert code == 0, told
    assert [json.loads(row)["id"] for row in rows(table, "events")] == list(range(2_000))


def test_numbers_of_accounts_are_checked_also_when_a_worker_is_killed(site: Site) -> None:
    right, wrong = "DE89 3704 0044 0532 0130 00", "DE88370400440532013000"
    sent = [{"id": n, "iban": (None if n % 3 else right) if n != 1_700 else wrong} for n in range(12_000)]
    (site.folder / "in.log").write_text("".join(f"{json.dumps(one)}\n" for one in sent))
    apply(
        site,
        {"file": {"path": "in.log"}},
        {"file": {"path": "out.jsonl"}},
        parse={"format": "json", "fields": {"id": "int64", "iban": "text"}},
        transforms=[{"python": "iban"}],
    )
    code, told = waybill(site, "try", "copy.yaml", "--steps")
    assert (code, "python: " in told) == (0, True), told
    site.fault("batch-written", "kill")
    assert waybill(site, "run", "copy")[0] != 0
    code, told = waybill(site, "run", "copy")
    assert code == 0, told
    arrived = [json.loads(line) for line in (site.folder / "out.jsonl").read_text().splitlines()]
    whole = [{**one, "iban": one["iban"] and right.replace(" ", "")} for one in sent if one["iban"] != wrong]
    assert arrived == whole
    assert sum(one["rejected"] for one in receipts(site)) == 1
    assert "python: iban rejects it" in waybill(site, "dead-letters", "list", "copy", "--json")[1]


def test_lines_of_a_format_are_read_and_written_also_when_a_worker_is_killed(site: Site) -> None:
    given = [f"{number:<6}{'ab'[number % 2] * 3}" for number in range(12_000)]
    given[1_700] = "short"
    (site.folder / "in.log").write_text("".join(f"{line}\n" for line in given))
    apply(
        site,
        {"file": {"path": "in.log"}},
        {"file": {"path": "out.txt"}},
        parse={"format": "fixed", "options": {"widths": {"id": 6, "what": 3}}},
        transforms=[{"filter": "$.what = 'aaa'"}],
        encode={"format": "fixed", "options": {"widths": {"what": 5, "id": 6}}},
    )
    site.fault("batch-written", "kill")
    assert waybill(site, "run", "copy")[0] != 0
    code, told = waybill(site, "run", "copy")
    assert code == 0, told
    wanted = [f"{line[6:]:<5}{line[:6]}" for line in given if line.endswith("aaa")]
    assert (site.folder / "out.txt").read_text().splitlines() == wanted
    assert sum(one["rejected"] for one in receipts(site)) == 1
    assert "Not of format fixed" in waybill(site, "dead-letters", "list", "copy", "--json")[1]


@pytest.mark.parametrize(
    ("parse", "words"),
    [
        ({"format": "fixed"}, "options.widths: Field required"),
        ({"format": "fixed", "options": {"widths": {"id": 1}}, "fields": {"id": "text"}}, "leave out fields"),
        ({"format": "json", "options": {"a": 1}}, "options goes with a format that a package brings"),
        ({"format": "fixt"}, "found 'fixt'"),
    ],
)
def test_a_format_that_does_not_fit_is_a_fault_of_the_document(site: Site, parse: object, words: str) -> None:
    document = {"version": 1, "name": "copy", "source": {"file": {"path": "in.log"}}, "parse": parse}
    (site.folder / "copy.yaml").write_text(json.dumps(document | {"sink": {"file": {"path": "out.txt"}}}))
    code, told = waybill(site, "check", "copy.yaml")
    assert (code, words in told) == (2, True), told


def test_an_open_range_is_not_finished_with_another_version_of_a_function(site: Site, installed: Path) -> None:
    own = shutil.copytree(installed, site.folder / "own")
    site.settings["PYTHONPATH"] = str(own)
    (site.folder / "in.log").write_text("".join(f'{{"id": {n}, "iban": null}}\n' for n in range(12_000)))
    apply(
        site,
        {"file": {"path": "in.log"}},
        {"file": {"path": "out.jsonl"}},
        parse={"format": "json", "fields": {"id": "int64", "iban": "text"}},
        transforms=[{"python": "iban"}],
    )
    site.fault("batch-written", "kill")
    assert waybill(site, "run", "copy")[0] != 0
    metadata = own / "waybill_iban-1.0.dist-info" / "METADATA"
    text = metadata.read_text()
    metadata.write_text(text.replace("Version: 1.0", "Version: 1.1"))
    code, told = waybill(site, "run", "copy")
    assert code == 5, told
    assert "python iban: waybill-iban 1.0 whose pipeline gave other results" in told
    metadata.write_text(text)
    code, told = waybill(site, "run", "copy")
    assert code == 0, told
    assert len((site.folder / "out.jsonl").read_text().splitlines()) == 12_000


def test_a_range_that_another_version_of_its_system_finishes_says_so(site: Site, installed: Path) -> None:
    own = shutil.copytree(installed, site.folder / "own")
    site.settings["PYTHONPATH"] = str(own)
    table = site.folder / "lines.db"
    apply(site, {"file": {"path": "in.log"}}, {"sqlite": {"path": str(table), "table": "lines"}})
    site.fault("before-receipt", "kill")
    assert waybill(site, "run", "copy")[0] != 0
    metadata = own / "waybill_sqlite-1.0.dist-info" / "METADATA"
    metadata.write_text(metadata.read_text().replace("Version: 1.0", "Version: 2.0"))
    module = own / "waybill_sqlite.py"
    module.write_text(module.read_text() + "\n# the second version\n")
    code, told = waybill(site, "run", "copy")
    assert code == 0, told
    assert "planned by 0.1.0+" in told
    assert "sqlite: waybill-sqlite 1.0, and is finished by 0.1.0+" in told
    assert rows(table) == LINES
    with (site.folder / "in.log").open("ab") as log:
        log.write(b"one more\n")
    code, told = waybill(site, "run", "copy")
    assert code == 0, told
    seen = sorted(receipts(site), key=lambda one: one["begin"])
    first, last = (seen[0], seen[-1])
    assert [one["code"].partition(", ")[2] for one in (first, last)] == [  # type: ignore[attr-defined]
        *("sqlite: waybill-sqlite 1.0", "sqlite: waybill-sqlite 2.0")
    ]
    moved = [one["where"].get("packages") for one in (first, last)]  # type: ignore[attr-defined]
    assert moved == [["sqlite: waybill-sqlite 2.0"], None]


def test_a_server_takes_a_package_that_was_replaced_when_it_is_told(site: Site, installed: Path) -> None:
    own = shutil.copytree(installed, site.folder / "own")
    site.settings["PYTHONPATH"] = str(own)
    with served(site) as (client, _):

        def version() -> tuple[str, str]:
            listed = client.get("/api/v1/plugins").json()["plugins"]
            return next((one["version"], one["installed"]) for one in listed if one["name"] == "iban")

        assert version() == ("1.0", "1.0")
        metadata = own / "waybill_iban-1.0.dist-info" / "METADATA"
        metadata.write_text(metadata.read_text().replace("Version: 1.0", "Version: 1.1"))
        assert version() == ("1.0", "1.1")
        told = client.post("/api/v1/plugins/reload").json()["reloaded"]
        assert told == [{"name": "iban", "before": "waybill-iban 1.0", "now": "waybill-iban 1.1"}]
        assert version() == ("1.1", "1.1")
        (own / "waybill_iban.py").write_text("import nothing_there")
        metadata.write_text(metadata.read_text().replace("Version: 1.1", "Version: 1.2"))
        assert client.get("/plugin/reload").json()["body"] == "Plugin reload succeeded"
        [broken] = client.post("/api/v1/plugins/reload").json()["broken"]
        assert (broken["name"], broken["version"], "nothing_there" in broken["error"]) == ("iban", "1.2", True)


def test_a_function_that_is_not_installed_is_a_fault_of_the_document(site: Site) -> None:
    document = {
        "version": 1,
        "name": "copy",
        "source": {"file": {"path": "in.log"}},
        "sink": {"file": {"path": "out.jsonl"}},
        "parse": {"format": "json", "fields": {"id": "int64"}},
    }
    for name, words in [("ibam", "did you mean iban?"), ("iban", "needs a field iban of type text")]:
        (site.folder / "copy.yaml").write_text(json.dumps({**document, "transforms": [{"python": name}]}))
        code, told = waybill(site, "check", "copy.yaml")
        assert (code, words in told) == (2, True), told


def of_the_page(site: Site, name: str) -> None:
    """Makes a system of "Write a sink" known, as though pip had installed it."""
    folder = site.folder / "installed"
    install(folder, f"waybill-{name}", {"waybill.systems": f"{name} = waybill_{name}:PLUGIN"}, code_of(name))
    site.settings["PYTHONPATH"] = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))


@pytest.mark.parametrize("step", ["batch-written", "before-receipt", "executed"])
def test_a_log_has_every_line_once_whatever_was_killed(site: Site, step: str) -> None:
    of_the_page(site, "journal")
    path = site.folder / "journal.db"
    apply(site, {"file": {"path": "in.log"}}, {"journal": {"path": str(path)}})
    site.fault(step, "kill")
    assert waybill(site, "run", "copy")[0] != 0
    code, told = waybill(site, "run", "copy")
    assert code == 0, told
    with closing(sqlite3.connect(path)) as database:
        assert [value for (value,) in database.execute("SELECT value FROM journal ORDER BY at")] == LINES
    seen = receipts(site)
    assert sum(one["delivered"] + one["deduplicated"] for one in seen) == len(LINES)
    assert sum(one["possible_duplicates"] + one["duplicates"] for one in seen) == 0


@pytest.mark.parametrize("step", ["batch-written", "before-receipt", "executed"])
def test_a_folder_with_commits_has_every_line_once_whatever_was_killed(site: Site, step: str) -> None:
    of_the_page(site, "folder")
    folder = site.folder / "lines"
    apply(site, {"file": {"path": "in.log"}}, {"folder": {"folder": str(folder)}})
    site.fault(step, "kill")
    assert waybill(site, "run", "copy")[0] != 0
    code, told = waybill(site, "run", "copy")
    assert code == 0, told
    commits = [json.loads(path.read_text()) for path in sorted((folder / "_commits").glob("*.json"))]
    names = [name for commit in commits for name in commit["files"]]
    assert [line for name in names for line in (folder / name).read_bytes().splitlines()] == LINES
    seen = receipts(site)
    assert sum(one["delivered"] + one["deduplicated"] for one in seen) == len(LINES)
    assert sum(one["possible_duplicates"] + one["duplicates"] for one in seen) == 0


@pytest.mark.parametrize(
    ("name", "most"), [("webhook", 50), ("sqlite", 120), ("pages", 80), ("iban", 40), ("fixed", 70)]
)
def test_an_example_is_short(name: str, most: int) -> None:
    lines = (EXAMPLES / name / f"waybill_{name}.py").read_text().splitlines()
    assert sum(1 for line in lines if line.strip()) <= most
