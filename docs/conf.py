"""What `make site` makes of README.md, docs and the pages beside them (docs/decisions/docs-site.md)."""

from __future__ import annotations

from sphinx.application import Sphinx

project = html_title = "Waybill"
root_doc = "README"
# The source is the whole checkout, so that a link means on the site what it means on GitHub; code becomes a download.
include_patterns = ["*.md", "docs/**.md"]
extensions = ["myst_parser"]
myst_heading_anchors = 6
html_theme = "furo"
exclude_patterns = [".*", "build", "demo-work"]
html_copy_source = html_show_sphinx = html_show_copyright = False

NAVIGATION = {
    "README": {
        "Begin": [
            "docs/guide",
            "docs/install-in-your-airflow",
            "docs/coming-from-rocketmq-connect",
            "docs/coming-from-kafka-connect",
            "docs/README.zh-CN",
        ],
        "Guarantees": ["docs/guarantees", "docs/delivery", "docs/fidelity", "docs/delivery-rules"],
        "Operate": [
            "docs/operate",
            "docs/metrics",
            "docs/access",
            "docs/rest",
            "docs/command-line-elsewhere",
            "docs/verify",
            "docs/trace",
            "docs/backfill",
            "docs/dead-letters",
            "docs/fail-over",
            "docs/scale-out",
            "docs/kubernetes",
            "docs/upgrade",
            "SECURITY",
        ],
        "Systems": [
            "docs/compressed-files",
            "docs/mqtt-source",
            "docs/mqtt-sink",
            "docs/rocketmq-mqtt",
            "docs/tables",
            "docs/change-streams",
            "docs/mysql",
            "docs/mysql-changes",
            "docs/sql-tables",
            "docs/migrate-a-cluster",
            "docs/native-client",
            "docs/spark-data-source",
        ],
        "Extend": [
            "docs/plugins",
            "docs/write-a-sink",
            "docs/write-a-source",
            "docs/write-a-transform",
            "docs/write-a-format",
            "docs/architecture",
            "CONTRIBUTING",
        ],
        "Reference": [
            "docs/options",
            "docs/rules",
            "docs/transforms",
            "docs/sql",
            "docs/avro",
            "docs/protobuf",
            "docs/debezium",
            "docs/cloudevents",
            "docs/keys",
            "docs/glossary",
            "docs/figures",
            "docs/faults",
            "CHANGELOG",
        ],
        "Decisions": ["docs/decisions/README"],
    },
    "docs/decisions/README": {"All": ["docs/decisions/*"]},
}
"""By page, the pages below it: captions of the side bar, each with its pages. A page that is not here is an error."""


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("source-read", _with_navigation)


def _with_navigation(_: Sphinx, page: str, source: list[str]) -> None:
    """Adds to what was read what GitHub would show as a block of code."""
    for caption, below in NAVIGATION.get(page, {}).items():
        pages = "\n".join(f"/{one}" for one in below)
        source[0] += f"\n\n```{{toctree}}\n:hidden:\n:glob:\n:caption: {caption}\n\n{pages}\n```\n"
