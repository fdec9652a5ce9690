"""The document of a connector names another table of MariaDB than before."""

from __future__ import annotations

import pytest

from tests import table_targets
from tests.mariadb import Database, MariaDB
from tests.site import Site

pytestmark = pytest.mark.server


@pytest.fixture
def database(mariadb: MariaDB) -> Database:
    return Database(mariadb)


def test_the_next_rows_go_to_another_table_and_back(bare_site: Site, database: Database) -> None:
    table_targets.check_next_rows_go_to_it_and_back(bare_site, database)


@pytest.mark.parametrize("several", [False, True])
def test_all_rows_come_into_another_table_when_somebody_asks(
    bare_site: Site, database: Database, several: bool
) -> None:
    table_targets.check_all_rows_come_into_it_when_somebody_asks(bare_site, database, several=several)


def test_what_a_wrong_document_planned_is_planned_again(bare_site: Site, database: Database) -> None:
    table_targets.check_what_a_wrong_document_planned_is_planned_again(bare_site, database)


def test_what_a_server_that_lagged_has_lost_is_told_and_brought_again(bare_site: Site, database: Database) -> None:
    table_targets.check_what_a_server_that_lagged_has_lost_is_told_and_brought_again(bare_site, database)


def test_a_corrected_document_counts_after_a_kill(bare_site: Site, database: Database) -> None:
    table_targets.check_a_corrected_document_counts_after_a_kill(bare_site, database)


def test_what_was_filtered_before_a_range_was_given_up_is_told(bare_site: Site, database: Database) -> None:
    table_targets.check_what_was_filtered_before_a_range_was_given_up_is_told(bare_site, database)


def test_a_run_with_nothing_to_move_notices_what_is_gone(bare_site: Site, database: Database) -> None:
    table_targets.check_a_run_with_nothing_to_move_notices_what_is_gone(bare_site, database)


def test_a_run_leaves_a_marker_of_what_was_placed_by_hand(bare_site: Site, database: Database) -> None:
    table_targets.check_a_run_leaves_a_marker_of_what_was_placed_by_hand(bare_site, database)
