"""What the Airflow of the local stack is told: files below `<home>/airflow`, and the environment of its processes.

Shipped settings come from `settings/airflow.env` (good for any Airflow that runs Waybill) and from
`settings/airflow-local.env` (this one only). Secrets are made once and stand in files that only their owner can read;
they reach the processes through the environment, as addresses and connections do. Nothing of it is on a command line.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from connect_core.errors import Unreachable
from connect_core.stack import jars, java, postgresql, secret, spark_connect
from connect_core.stack.parts import API_SERVER, Site
from connect_core.stack.rocketmq import settings_of

USER = "admin"
DATABASE = "airflow"
ENGINE_VARIABLE = "AIRFLOW_CONN_WAYBILL_ENGINE"
DATABASE_VARIABLE = "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"
DAG_FILE = '''"""The DAGs of this Waybill installation, one for each connector of the ledger (airflow dag)."""

from connect_core.airflow import register

register(globals())
'''
"""The same as `dags/replication.py`, which is for an Airflow of your own."""

_NOT_INHERITED = ("AIRFLOW_HOME", "AIRFLOW_CONFIG")
_CONFIG_FILE = (
    "# Every setting comes through the environment; without this file Airflow would make up one of its own.\n"
)


def folder(home: Path) -> Path:
    """AIRFLOW_HOME."""
    return home / "airflow"


def password_file(home: Path) -> Path:
    """What Airflow compares logins with: user name -> password, as JSON."""
    return folder(home) / "passwords.json"


def password(home: Path) -> str:
    """Of the one user; made when there is none."""
    found: str = json.loads(secret.kept(password_file(home), _new_password_file))[USER]
    return found


def write_files(home: Path) -> None:
    """The files that Airflow reads. Idempotent, and the same whichever part does it first."""
    dags = folder(home) / "dags"
    dags.mkdir(parents=True, exist_ok=True)
    _write(folder(home) / "airflow.cfg", _CONFIG_FILE)
    _write(dags / "replication.py", DAG_FILE)
    password(home)


def environment(site: Site, inherited: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The whole environment of one process. A person's own settings of some other Airflow are kept out of it."""
    kept = {
        name: value
        for name, value in inherited.items()
        if name not in _NOT_INHERITED and not name.startswith("AIRFLOW__")
    }
    shipped = settings_of("airflow.env") | settings_of("airflow-local.env")
    return (
        kept | shipped | _places(site) | _secrets(site) | _connections() | _programs(kept) | dict(site.options.airflow)
    )


def _places(site: Site) -> dict[str, str]:
    port = _api_port(site)
    return {
        "AIRFLOW_HOME": str(folder(site.home)),
        "WAYBILL_HOME": str(site.home),
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "AIRFLOW__CORE__DAGS_FOLDER": str(folder(site.home) / "dags"),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(password_file(site.home)),
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__BASE_URL": f"http://127.0.0.1:{port}",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{port}/execution/",
        DATABASE_VARIABLE: postgresql.url(site.home, DATABASE),
    }


def _api_port(site: Site) -> int:
    ports = site.neighbours.get(API_SERVER)
    if ports is None:
        raise Unreachable(
            f"The parts of Airflow need the {API_SERVER}, and there is none",
            where=str(site.home),
            next_step=f"Run `waybill dev up --only {API_SERVER}` with the other parts",
        )
    return ports["http"]


def _secrets(site: Site) -> dict[str, str]:
    kept = json.loads(secret.kept(folder(site.home) / "secrets.json", _new_secrets))
    return {
        "AIRFLOW__API__SECRET_KEY": kept["secret_key"],
        "AIRFLOW__API_AUTH__JWT_SECRET": kept["jwt_secret"],
        "AIRFLOW__CORE__FERNET_KEY": kept["fernet_key"],
    }


def _connections() -> dict[str, str]:
    """Of type `spark`: for spark-submit. That of the engine is looked up when a task asks (`airflow.secrets`):
    in an environment it would be the address that the engine had when Airflow was started."""
    submit = {"conn_type": "spark", "host": "local[2]", "extra": {"deploy-mode": "client"}}
    return {"AIRFLOW_CONN_WAYBILL_SUBMIT": json.dumps(submit)}


def engine_connection(home: Path, ports: Mapping[str, int]) -> str:
    """Of type `spark_connect`, for an Airflow whose engine stays where it is. A secret: it holds the token."""
    # By number the client would want TLS.
    place = {"conn_type": "spark_connect", "host": "sc://localhost", "port": ports["grpc"]}
    return json.dumps(place | {"password": spark_connect.token(home)})


def _programs(inherited: Mapping[str, str]) -> dict[str, str]:
    """Where tasks find spark-submit and its Java: beside this Python, whatever the caller's PATH was."""
    path = os.pathsep.join(filter(None, (str(Path(sys.executable).parent), inherited.get("PATH", ""))))
    with suppress(Unreachable):
        return {"PATH": path, "JAVA_HOME": str(java.find(jars.cache_folder()).resolve().parent.parent)}
    return {"PATH": path}


def _new_password_file() -> str:
    return json.dumps({USER: secrets.token_urlsafe(12)})


def _new_secrets() -> str:
    fernet_key = base64.urlsafe_b64encode(os.urandom(32)).decode()
    made = {"secret_key": secrets.token_urlsafe(32), "jwt_secret": secrets.token_urlsafe(64), "fernet_key": fernet_key}
    return json.dumps(made)


def _write(path: Path, text: str) -> None:
    """Leaves a file alone that is right already: Airflow parses one again whose time has changed."""
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
