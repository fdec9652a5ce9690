"""Every example is sound, every option is documented, every template passes its own check."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from connect_core.config import Settings, check, check_paths, load_settings, read_paths, read_text, resolve
from connect_core.config import option_models as models
from connect_core.config.option_pages import DOCUMENT, described, page
from connect_core.config.templates import template
from connect_core.errors import ConfigError
from connect_core.sdk.plugin import ROLES

ROOT = Path(__file__).parents[3]
EXAMPLES = sorted((ROOT / "conf" / "connectors").iterdir())
SYSTEMS = sorted({name for role in ROLES for name in models.systems(role)})


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_is_sound_and_resolves(path: Path, tmp_path: Path) -> None:
    folder = tmp_path / "conf" / "connections"
    folder.mkdir(parents=True)
    (folder / "main.yaml").write_text("rocketmq: {name_servers: ['127.0.0.1:9876']}")
    home = tmp_path / ".waybill"
    settings = load_settings(home, {})
    for written in read_paths([path])[0]:
        own = read_text(path.read_text(), where=path.name, suffix=path.suffix, file=tmp_path / path.name)[0]
        checked = check(own, home, settings)
        assert resolve(checked.document, home, settings, "u").name == checked.document.name
        assert written.data == own.data


def test_the_examples_go_together_with_the_connections_beside_them() -> None:
    settings = load_settings(ROOT / ".waybill", {})
    checked = check_paths([ROOT / "conf" / "connectors"], ROOT / ".waybill", settings)
    assert len({item.document.name for item in checked}) == len(checked) >= len(EXAMPLES)


def test_every_option_is_documented() -> None:
    text = (ROOT / "docs" / "options.md").read_text()
    for system in SYSTEMS:
        for role in ROLES:
            model = models.find(role, system)
            for name in models.written_fields(model) if model else []:
                assert f"| `{name}` |" in text, f"{system}.{name} is not in docs/options.md"


def test_the_page_is_current() -> None:
    text = (ROOT / "docs" / "options.md").read_text()
    assert text == page(), "write it again: python -m connect_core.config.option_pages > docs/options.md"


def test_every_option_has_a_description() -> None:
    for system in (*SYSTEMS, DOCUMENT):
        assert [option.name for option in described(system) if not option.description] == []


def test_an_unknown_system_is_told() -> None:
    with pytest.raises(ConfigError, match='There is no system "nope"'):
        described("nope")


@pytest.mark.parametrize(("source", "sink"), list(itertools.product(models.systems("source"), models.systems("sink"))))
def test_a_template_passes_its_own_check(source: str, sink: str, home: Path, settings: Settings) -> None:
    text = template(source, sink, "first")
    if source == sink == "rocketmq":
        text = text.replace('topic: "orders"', 'topic: "orders-copy"')
    assert check(read_text(text, where="x")[0], home, settings).document.name == "first"


def test_a_template_with_every_option_set_passes_too(home: Path, settings: Settings) -> None:
    text = "\n".join(
        line.replace("    # ", "    ", 1) if line.startswith("    # ") and line.split()[1][:-1] in _names() else line
        for line in template("file", "rocketmq", "first").splitlines()
    )
    assert "\n    parallel: false" in text
    check(read_text(text, where="x")[0], home, settings)


def _names() -> set[str]:
    return {option.name for system in SYSTEMS for option in described(system)}


@pytest.mark.parametrize(("source", "sink"), [("nope", "file"), ("file", "flie")])
def test_a_template_for_an_unknown_system_is_refused(source: str, sink: str) -> None:
    with pytest.raises(ConfigError, match=r"No system .* can be a"):
        template(source, sink, "x")
