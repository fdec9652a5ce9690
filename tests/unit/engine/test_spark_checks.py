"""What an engine demands of Spark and of its own installation."""

import pytest

from connect_core.engine import spark_checks
from connect_core.errors import Fatal, VersionMismatch


@pytest.mark.parametrize(
    ("master", "max_failures"),
    [("local", None), ("local[8]", None), ("local[*]", "4"), ("local[4,1]", "4"), ("spark://host:7077", "1")],
)
def test_a_server_that_tries_once_is_fit(master: str, max_failures: str | None) -> None:
    spark_checks.check_retries(master, max_failures, "false", "here")


@pytest.mark.parametrize(
    ("master", "max_failures", "tries"),
    [("local[2,3]", "1", 3), ("local[*, 2]", None, 2), ("spark://host:7077", None, 4), ("yarn", "2", 2)],
)
def test_a_server_that_tries_again_is_refused(master: str, max_failures: str | None, tries: int) -> None:
    with pytest.raises(Fatal, match=f"tries a task {tries} times"):
        spark_checks.check_retries(master, max_failures, "false", "here")


def test_a_server_that_speculates_is_refused() -> None:
    with pytest.raises(Fatal, match=r"spark\.speculation"):
        spark_checks.check_retries("yarn", "1", "true", "here")


def test_a_server_of_another_release_is_refused() -> None:
    spark_checks.check_version("4.1.3", "4.1.3", "here")
    with pytest.raises(VersionMismatch, match=r"The engine runs Spark 3\.5\.7"):
        spark_checks.check_version("3.5.7", "4.1.3", "here")


def test_both_packages_have_one_version() -> None:
    assert spark_checks.one_version({"pyspark": "4.1.3", "pyspark-client": "4.1.3"}) == "4.1.3"
    assert spark_checks.one_version({"pyspark": "4.1.3"}) == "4.1.3"
    with pytest.raises(VersionMismatch, match=r"pyspark 4\.1\.3, pyspark-client 4\.2\.0"):
        spark_checks.one_version({"pyspark": "4.1.3", "pyspark-client": "4.2.0"})
    with pytest.raises(VersionMismatch, match="neither is installed"):
        spark_checks.one_version({})


def test_this_installation_is_sound() -> None:
    assert spark_checks.installed_version().count(".") == 2


ON, SECRET = "true", {"spark.authenticate": "true"}


@pytest.mark.parametrize("way", ["spark.network.crypto.enabled", "spark.ssl.rpc.enabled"])
def test_connections_of_spark_that_are_encrypted_may_leave_the_host(way: str) -> None:
    spark_checks.check_private({**SECRET, way: ON}, "spark://host:7077")


@pytest.mark.parametrize(
    "settings", [{}, SECRET, {"spark.network.crypto.enabled": ON}, {**SECRET, "spark.network.crypto.enabled": "false"}]
)
def test_what_searches_carry_does_not_leave_the_host_in_plain_text(settings: dict[str, str]) -> None:
    with pytest.raises(Fatal, match="are not encrypted") as refused:
        spark_checks.check_private(settings, "spark://host:7077")
    assert "spark.network.crypto.enabled" in refused.value.next_step
