"""Runs the worked example of a page: its document is written to a file, then its commands are typed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.site import Site
from tests.warm_shell import waybill_for_shells

DOCS = Path(__file__).parents[1] / "docs"
_USUAL_PORT = r"\b1883\b"


def example_done(page: str, site: Site, document: str, mqtt_port: int) -> str:
    """What the commands of `page` have printed, in the folder of the site. Its first document goes to the file
    `document`; the usual port of MQTT stands for `mqtt_port`."""
    text = re.sub(_USUAL_PORT, str(mqtt_port), (DOCS / page).read_text())
    first, *_ = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    [script] = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    (site.folder / document).write_text(first)
    environment = site.environment()
    command = ["bash", "-euo", "pipefail", "-c", script]
    with waybill_for_shells(site.folder) as programs:
        path = (str(programs), str(Path(sys.executable).parent), environment["PATH"])
        environment["PATH"] = os.pathsep.join(path)
        done = subprocess.run(command, cwd=site.folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout
