"""`waybill import rocketmq-connect`: a worker's connectors go on here where they were there."""

from __future__ import annotations

import json

import pytest

from tests.site import Site
from tests.unit.service.test_importing import stored

pytestmark = [pytest.mark.server]

PACKAGE = "org.apache.rocketmq.connect."


def test_a_worker_s_connectors_go_on_where_they_were(sqlite_site: Site) -> None:
    site = sqlite_site
    lines = [f"line {number} für 😀" for number in range(1_000)]
    text = "".join(f"{line}\n" for line in lines)
    (site.folder / "in.txt").write_text(text)
    sent = "".join(f"{line}\n" for line in lines[:400])
    connectors = {
        "in": {
            "connector.class": f"{PACKAGE}file.FileSourceConnector",
            "filename": "in.txt",
            "connect.topicname": site.topic,
        },
        "redis": {"connector.class": f"{PACKAGE}elasticsearch.ElasticsearchSinkConnector"},
    }
    stored(site.folder / "store", connectors, {"in": ("in.txt", len(sent.encode("utf-16-le")) // 2)})
    words = ("import", "rocketmq-connect", "--store", str(site.folder / "store"), "--json")
    seen = json.loads(site.waybill(*words))
    place = {"partition": str(site.folder / "in.txt"), "offset": len(sent.encode())}
    assert [(one["connector"], one["offsets"]) for one in seen["connectors"]] == [
        ("in", [place]),
        ("redis", []),
    ]
    assert "there is no" in seen["connectors"][1]["problems"][0]
    assert site.json("connectors", "list")["connectors"] == []
    _is_stopped_where_its_offsets_cannot_be_set(site, words)
    assert json.loads(out_of(site, *words, "--apply"))["applied"]
    site.waybill("run", "in")
    assert sorted(site.messages()) == sorted(line.encode() for line in lines[400:])
    [again, _] = json.loads(out_of(site, *words, "--apply"))["connectors"]
    assert again["problems"] == ["there is a connector of this name already"]
    [change] = [one for one in site.json("offsets", "history", "in")["history"] if one["kind"] == "set"]
    assert (change["after"]["offset"], change["why"]) == (len(sent.encode()), "taken over from RocketMQ Connect")


def _is_stopped_where_its_offsets_cannot_be_set(site: Site, words: tuple[str, ...]) -> None:
    """Else it would be run from the beginning. The next call finishes it."""
    stack = site.home / "stack.json"
    stack.rename(site.home / "away.json")
    assert "The local stack is not running" in site.waybill(*words, "--apply", code=3)
    [made] = site.json("connectors", "list")["connectors"]
    assert (made["name"], made["state"]) == ("in", "stopped")
    (site.home / "away.json").rename(stack)


def out_of(site: Site, *words: str) -> str:
    """It ends with 2 where something is left out."""
    with site.start(*words) as process:
        out, err = process.communicate(timeout=120)
    assert process.returncode == 2, err
    return out
