"""Settings: the file, then the environment, then flags."""

from __future__ import annotations

from pathlib import Path

import pytest

from connect_core.config import load_settings, unknown_variables
from connect_core.config.settings import Settings
from connect_core.config.written import read_text
from connect_core.errors import ConfigError

ROOT = Path(__file__).parents[3]


def test_the_defaults() -> None:
    settings = load_settings(Path("/srv/data/.waybill"), {})
    assert (settings.lease_ttl_s, settings.lease_margin_s, settings.quantum_s) == (15, 4, 5)
    assert (settings.lanes, settings.engine) == (2, "spark")
    assert settings.files_roots == (Path("/srv/data"),)
    assert settings.user


def test_the_file_in_conf_is_the_one_in_the_package_and_complete() -> None:
    shown, packaged = ROOT / "conf" / "defaults.yaml", ROOT / "connect_core" / "config" / "defaults.yaml"
    assert shown.read_text() == packaged.read_text()
    (written,) = read_text(packaged.read_text(), where="defaults.yaml")
    assert set(written.data) == set(Settings.model_fields)


def test_the_former_name_of_a_setting_is_read() -> None:
    assert load_settings(None, {"WAYBILL_LINGER_S": "3"}).idle_timeout_s == 3


def test_environment_overrides_file_and_flags_override_both(tmp_path: Path) -> None:
    environ = {"WAYBILL_QUANTUM_S": "2s", "WAYBILL_LANES": "7", "WAYBILL_USER": "ann", "WAYBILL_ENGINE": "inline"}
    settings = load_settings(None, environ, lanes=3, engine=None)
    assert (settings.quantum_s, settings.lanes, settings.user, settings.engine) == (2, 3, "ann", "inline")


def test_roots_are_several_and_absolute(tmp_path: Path) -> None:
    home = tmp_path / ".waybill"
    settings = load_settings(home, {"WAYBILL_FILES_ROOTS": f"logs:{tmp_path}/out"})
    assert settings.files_roots == (tmp_path / "logs", tmp_path / "out")


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"WAYBILL_LANES": "many"}, "lanes: Input should be a valid integer"),
        ({"WAYBILL_DRIVER_ADDRESS": "0.0.0.0"}, "driver_address: 0.0.0.0 is every address of this host"),
        ({"WAYBILL_DRIVER_ADDRESS": "::"}, "driver_address: :: is every address of this host"),
        ({"WAYBILL_DRIVER_ADDRESS": "driver-1"}, "driver_address: 'driver-1' does not appear to be"),
        ({"WAYBILL_SUBMIT_MASTER": "mesos://x"}, "submit_master: String should match pattern"),
        ({"WAYBILL_QUANTUM_S": "soon"}, "quantum_s: 'soon' is not a duration"),
        ({"WAYBILL_QUANTUM_S": "11"}, "a quantum and its last send must end while its lease holds"),
        ({"WAYBILL_LEASE_MARGIN_S": "1"}, "must be at least send_timeout_s"),
    ],
)
def test_wrong_settings_are_told(environ: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match="The settings are not valid") as raised:
        load_settings(None, environ)
    assert words in str(raised.value)


def test_misspelt_variables_are_noticed() -> None:
    environ = {"WAYBILL_LEASE_TTLS": "3", "WAYBILL_TESTING": "1", "WAYBILL_HOME": "x", "OTHER": "y"}
    assert unknown_variables(environ) == {"WAYBILL_LEASE_TTLS": "WAYBILL_LEASE_TTL_S"}
