"""Dead letters between real files: chosen, exported, replayed through the document of today, discarded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.site import Site

FIELDS = {"heat": "int32", "n": "int64"}
TODAY = {"heat": "text", "n": "int64"}


def apply(site: Site, fields: dict[str, str] = FIELDS, **more: Any) -> None:
    site.apply(
        "oven",
        {
            "source": {"file": {"path": "in/*.log"}},
            "sink": {"file": {"path": "out.log"}},
            "parse": {"format": "json", "fields": fields},
            "transforms": [{"set": {"line": "{file:name}"}}],
            "errors": {"tolerance": "all"},
            **more,
        },
    )


def feed(site: Site, *lines: str) -> None:
    (site.folder / "in").mkdir(exist_ok=True)
    with (site.folder / "in" / "a.log").open("a") as file:
        file.writelines(f"{line}\n" for line in lines)


def body(number: int, heat: object) -> str:
    return json.dumps({"n": number, "heat": heat})


def run(site: Site, *words: str) -> None:
    site.waybill(*words, "--engine", "inline")


def replay(site: Site, *words: str) -> Any:
    return site.json("dead-letters", "replay", "oven", *words, "--engine", "inline", "--yes")


def letters(site: Site, *words: str) -> list[Any]:
    return site.json("dead-letters", "list", "oven", *words)["dead_letters"]


def replayed(site: Site, told: Any) -> list[dict[str, Any]]:
    """What a replay has written, beside the file of the live stream."""
    (one,) = told["replays"]
    assert one["state"] == "done"
    (path,) = one["sink"].values()
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def test_rejected_records_go_through_the_document_of_today_once(bare_site: Site) -> None:
    site = bare_site
    apply(site)
    feed(site, body(0, 20), body(1, "hot"), "no json", body(2, "hotter"), body(3, 30))
    run(site, "run", "oven")
    assert [one["offset"] for one in letters(site)] == [53, 45, 21]
    apply(site, TODAY)
    told = replay(site, "--stage", "parse")
    assert replayed(site, told) == [
        {"heat": "hot", "line": "a.log", "n": 1},
        {"heat": "hotter", "line": "a.log", "n": 2},
    ]
    (one,) = told["replays"]
    assert (one["read"], one["delivered"], one["rejected"]) == (3, 2, 1)
    (left,) = letters(site)
    assert (left["offset"], left["state"], left["stage"]) == (45, "open", "parse")
    (receipt,) = site.json("receipts", "oven", "--stream", one["stream"])["receipts"]
    by = {each["replayed_by"] for each in letters(site, "--state", "replayed")}
    assert by == {receipt["run"]}
    assert site.json("dead-letters", "replay", "oven", str(left["id"] - 1), "--yes")["left_out"] == {"replayed": 1}
