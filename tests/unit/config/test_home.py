"""Which home serves a folder, and that only `create_home` makes one."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from connect_core.config import create_home, find_home, folder_of, require_home
from connect_core.errors import ConfigError, Unreachable


def test_the_home_is_found_upwards(tmp_path: Path) -> None:
    home = create_home(tmp_path, {})
    inside = tmp_path / "a" / "b"
    inside.mkdir(parents=True)
    assert find_home(inside, {}) == home == tmp_path / ".waybill"
    assert folder_of(home) == tmp_path


def test_looking_makes_nothing(tmp_path: Path) -> None:
    assert find_home(tmp_path, {}) is None
    with pytest.raises(Unreachable, match=r"There is no home \(.waybill\) yet") as raised:
        require_home(tmp_path, {})
    assert raised.value.exit_code == 3
    assert list(tmp_path.iterdir()) == []


def test_the_environment_names_another(tmp_path: Path) -> None:
    named = tmp_path / "elsewhere" / "home"
    environ = {"WAYBILL_HOME": str(named)}
    assert find_home(tmp_path, environ) is None
    assert create_home(tmp_path, environ) == named == find_home(tmp_path, environ)
    assert folder_of(None, environ) == named.parent


def test_a_home_is_its_owners_and_not_gits(tmp_path: Path) -> None:
    home = create_home(tmp_path, {})
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert (home / ".gitignore").read_text() == "*\n"
    assert create_home(tmp_path, {}) == home, "making it again changes nothing"


def test_a_home_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="The home cannot be created"):
        create_home(tmp_path, {"WAYBILL_HOME": str(tmp_path / "file" / "home")})
