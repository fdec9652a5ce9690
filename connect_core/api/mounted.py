"""Where a request is within the application, which may be mounted below a prefix: in Airflow's web server it is."""

from __future__ import annotations

from starlette.types import Scope


def path_within(scope: Scope) -> str:
    """As routes have it. Of a request that no mount within the application has taken."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", ""))
