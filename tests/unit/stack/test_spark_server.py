"""What the resident server is started with."""

from pathlib import Path

import pytest

from connect_core.stack.spark_server import (
    Server,
    server_command,
    server_environment,
    server_settings,
    write_settings,
)


@pytest.fixture
def server(tmp_path: Path) -> Server:
    return Server(tmp_path / "spark", 15002, "the-token", slots=8, java=Path("/java/home/bin/java"))


def test_the_token_is_only_in_the_environment(server: Server) -> None:
    write_settings(server)
    files = [path.read_text() for path in server.folder.rglob("*") if path.is_file()]
    assert files
    assert not any("the-token" in text for text in (*files, *server_command(server)))
    assert server_environment(server, {})["SPARK_CONNECT_AUTHENTICATE_TOKEN"] == "the-token"


def test_the_command_reads_the_settings_that_were_written(server: Server) -> None:
    write_settings(server)
    command = server_command(server)
    written = Path(command[command.index("--properties-file") + 1]).read_text().splitlines()
    assert dict(line.split(" ", 1) for line in written) == server_settings(server)


def test_the_class_path_begins_with_no_folder_that_would_forbid_an_archive_of_classes(server: Server) -> None:
    write_settings(server)
    assert not Path(server_environment(server, {})["SPARK_CONF_DIR"]).exists()


def test_every_listener_is_on_loopback(server: Server) -> None:
    settings = server_settings(server)
    addresses = ("spark.driver.host", "spark.driver.bindAddress", "spark.connect.grpc.binding.address")
    assert {settings[name] for name in addresses} == {"127.0.0.1"}
    assert settings["spark.ui.enabled"] == "false"


def test_workers_get_what_the_caller_has_but_for_what_makes_another_server(server: Server) -> None:
    caller = {"SPARK_REMOTE": "sc://elsewhere", "WAYBILL_TESTING": "1", "MY_SECRET": "s"}
    environment = server_environment(server, caller)
    assert "SPARK_REMOTE" not in environment
    assert (environment["WAYBILL_TESTING"], environment["MY_SECRET"]) == ("1", "s")
    assert environment["JAVA_HOME"] == "/java/home"


def test_sockets_have_a_place_with_a_short_path(server: Server, tmp_path: Path) -> None:
    deep = Server(tmp_path / ("deep" * 30), 1, "t", slots=1, java=server.java)
    folder = server_settings(deep)["spark.python.unix.domain.socket.dir"]
    assert len(folder) <= 60
    write_settings(deep)
    try:
        assert Path(folder).stat().st_mode & 0o777 == 0o700
    finally:
        Path(folder).rmdir()
