"""A table of MySQL as a source, while processes are killed and others write to it."""

from __future__ import annotations

import pytest

from tests.faults.kit.emptying import Emptying, EmptyingFaults
from tests.faults.kit.journeys import SHORT_LEASES
from tests.mariadb import Database, MariaDB
from tests.mysql_writers import TABLE, writing
from tests.site import Site

pytestmark = [pytest.mark.server, pytest.mark.fault(costly=True)]


@pytest.fixture(params=["file", "table"])
def emptying(bare_site: Site, mariadb: MariaDB, request: pytest.FixtureRequest) -> Emptying:
    bare_site.settings.update(SHORT_LEASES)
    filled = "INSERT INTO orders (writer) SELECT 0 FROM seq_1_to_{count}"
    made = Emptying(bare_site, "MySQL", Database(mariadb), request.param, filled, writing)
    made.apply(TABLE, "bigint AUTO_INCREMENT PRIMARY KEY")
    return made


class TestTheTable(EmptyingFaults):
    pass
