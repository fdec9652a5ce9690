"""A table of PostgreSQL as a source, while processes are killed and others write to it."""

from __future__ import annotations

import pytest

from tests.faults.kit.emptying import Emptying, EmptyingFaults
from tests.faults.kit.journeys import SHORT_LEASES
from tests.postgres_tables import Database
from tests.site import Site
from tests.table_writers import TABLE, writing

pytestmark = [pytest.mark.server, pytest.mark.fault]


@pytest.fixture(params=["file", "table"])
def emptying(bare_site: Site, postgres_url: str, request: pytest.FixtureRequest) -> Emptying:
    bare_site.settings.update(SHORT_LEASES)
    filled = "INSERT INTO orders (writer) SELECT 0 FROM generate_series(1, {count})"
    made = Emptying(bare_site, "PostgreSQL", Database(postgres_url), request.param, filled, writing)
    made.apply(TABLE, "bigserial")
    return made


class TestTheTable(EmptyingFaults):
    pass
