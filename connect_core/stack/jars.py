"""The published jars of RocketMQ in a cache of the user: fetched once, every byte checked against a recorded digest.

`fetch(version, cache)` gives the folder that holds exactly the jars of `rocketmq-<version>.sha256`; a version with a
product before it (`hivemq-2025.5`) is that product's, whose list may have a whole archive instead. They come through
Maven where `mvn` is on the PATH, else through the Ivy that PySpark carries. Both are given the flat recorded list with
transitive resolution off, so they cannot settle a version conflict in two ways. The set appears under its final name by
one rename, so nobody ever sees half of it; what an interrupted fetch had loaded stays in the caches of Maven and Ivy,
and the next one goes on from there. Only the standard library is imported: `make` runs it before there is a virtualenv
(`python3 -m connect_core.stack.jars VERSION`). It never names a host: both tools use the repositories they are set to.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from importlib.util import find_spec
from pathlib import Path

from connect_core.errors import Refused, Unreachable
from connect_core.stack import java, network
from connect_core.stack.locking import locked

VERSION = "5.5.0"
"""What `dev up` starts. The lists beside this module are the versions that can be fetched."""

Report = Callable[[str], None]

_ROCKETMQ = "rocketmq"

_MAVEN_GOAL = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
_FETCH_LIMIT_S = 1200
# The repository is Ivy's default one. Its poms and checksum files are not asked for: the list says what is wanted and
# the recorded digests are stronger; this makes one request a jar instead of four.
_IVY_SETTINGS = """<ivysettings><settings defaultResolver="default"/>
<resolvers><ibiblio name="default" m2compatible="true" usepoms="false" checksums=""/></resolvers></ivysettings>
"""
_TAIL_LINES = 8


@dataclass(frozen=True)
class Jar:
    """One recorded jar; `classifier` is empty for most. `kind` is another one of an archive that has jars in it."""

    group: str
    artifact: str
    version: str
    classifier: str
    sha256: str
    size_bytes: int
    kind: str = "jar"

    @property
    def file_name(self) -> str:
        tail = f"-{self.classifier}" if self.classifier else ""
        return f"{self.artifact}-{self.version}{tail}.{self.kind}"


def cache_folder() -> Path:
    """`$WAYBILL_CACHE`, else `waybill` in the user's cache folder."""
    chosen = os.environ.get("WAYBILL_CACHE")
    return Path(chosen).absolute() if chosen else Path.home() / ".cache" / "waybill"


def recorded(version: str) -> tuple[Jar, ...]:
    """The jars of one version. `Refused` when no list of it is recorded."""
    product, number = _product(version)
    path = Path(__file__).with_name(f"{product}-{number}.sha256")
    if not path.exists():
        known = sorted(p.stem.removeprefix(f"{_ROCKETMQ}-") for p in path.parent.glob("*.sha256"))
        raise Refused(f"No digests of {product} {number} are recorded", next_step=f"Choose one of {', '.join(known)}")
    return tuple(_parse(line) for line in path.read_text().splitlines() if line and not line.startswith("#"))


def fetch(version: str = VERSION, cache: Path | None = None, report: Report = lambda _: None) -> Path:
    """The folder with the checked jars of `version`, fetched when they are not there yet (about 90 MB)."""
    cache = cache or cache_folder()
    folder = folder_of(version, cache)
    install(recorded(version), folder, cache, report)
    return folder


def folder_of(version: str, cache: Path) -> Path:
    """Where the jars of a version are when they were fetched."""
    return cache.joinpath(*_product(version))


def _product(version: str) -> tuple[str, str]:
    product, dash, number = version.rpartition("-")
    return (product, number) if dash else (_ROCKETMQ, version)


def install(jars: tuple[Jar, ...], folder: Path, cache: Path, report: Report) -> None:
    """Makes `folder` hold exactly `jars`. `Refused` when one comes with other bytes, `Unreachable` when none comes."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with locked(folder.with_name(f"{folder.name}.lock")):
        if folder.is_dir() and not differences(jars, folder):
            return
        shutil.rmtree(folder, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix=f"{folder.name}.", dir=folder.parent) as work:
            lib = Path(work) / "lib"
            _load(jars, Path(work), cache, report)
            _check(jars, lib)
            lib.rename(folder)


def is_cached(version: str = VERSION, cache: Path | None = None) -> bool:
    """Whether nothing has to be fetched. Sizes only: `fetch` is what checks the bytes."""
    folder = folder_of(version, cache or cache_folder())
    return all(_size(folder / jar.file_name) == jar.size_bytes for jar in recorded(version))


def differences(jars: tuple[Jar, ...], folder: Path) -> list[str]:
    """What in `folder` is not as recorded, one sentence each; strangers count, since a class path takes every jar."""
    wanted = {jar.file_name: jar.sha256 for jar in jars}
    there = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    found = [f"{name} is missing" for name in sorted(wanted.keys() - there)]
    found += [f"{name} is not in the list" for name in sorted(there - wanted.keys())]
    for name in sorted(wanted.keys() & there):
        digest = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        if digest != wanted[name]:
            found.append(f"{name} has SHA-256 {digest}, recorded is {wanted[name]}")
    return found


def _parse(line: str) -> Jar:
    digest, size, coordinates = line.split()
    group, artifact, version, *more = coordinates.split(":")
    classifier, kind = [*more, "", ""][:2]
    return Jar(group, artifact, version, classifier, digest, int(size), kind or "jar")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else -1


def _check(jars: tuple[Jar, ...], lib: Path) -> None:
    found = differences(jars, lib)
    if found:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise Refused(
            f"A jar is not the recorded one: {found[0]}{more}",
            next_step="The repository or its local copy gave other bytes: remove that file from ~/.m2/repository or "
            "the ivy folder of the cache and run again; nothing was installed",
        )


def _load(jars: tuple[Jar, ...], work: Path, cache: Path, report: Report) -> None:
    """Puts the jars into `work/lib`."""
    megabytes = sum(jar.size_bytes for jar in jars) // 1_000_000
    maven = shutil.which("mvn")
    report(f"fetching {len(jars)} jars ({megabytes} MB) with {'Maven' if maven else 'Ivy'}")
    if maven:
        (work / "pom.xml").write_text(maven_document(jars))
        goals = [_MAVEN_GOAL, "-DincludeScope=runtime", f"-DoutputDirectory={work / 'lib'}"]
        _run([maven, "-q", "-B", "-f", str(work / "pom.xml"), *goals], work)
    else:
        (work / "ivy.xml").write_text(ivy_document(jars))
        (work / "settings.xml").write_text(_IVY_SETTINGS)
        pattern = f"{work / 'lib'}/[artifact]-[revision](-[classifier]).[ext]"
        trusting = [] if java.of_machine() else network.java_arguments(work)
        ivy = [str(java.find(cache)), *trusting, "-jar", str(_ivy_jar())]
        ivy += ["-cache", str(cache / "ivy"), "-confs", "default"]
        ivy += ["-settings", str(work / "settings.xml"), "-ivy", str(work / "ivy.xml")]
        _run([*ivy, "-retrieve", pattern], work)


def _run(command: list[str], work: Path) -> None:
    log = work / "fetch.log"
    with log.open("w") as out:
        try:
            code = subprocess.run(command, stdout=out, stderr=out, cwd=work, timeout=_FETCH_LIMIT_S).returncode
        except subprocess.TimeoutExpired:
            out.write(f"no end after {_FETCH_LIMIT_S} s\n")
            code = -1
    if code != 0:
        tail = "\n".join(log.read_text(errors="replace").strip().splitlines()[-_TAIL_LINES:])
        raise Unreachable(
            f"The jars could not be fetched: {Path(command[0]).name} ended with {code}\n{tail}\n",
            next_step="Check the network and run the command again; downloaded files are kept",
        )


def _ivy_jar() -> Path:
    spec = find_spec("pyspark")
    for place in (spec.submodule_search_locations or []) if spec else []:
        for jar in Path(place, "jars").glob("ivy-*.jar"):
            return jar
    raise Unreachable(
        "Neither Maven nor PySpark's Ivy is installed to download jars", next_step="Install Maven or pyspark"
    )


def maven_document(jars: tuple[Jar, ...]) -> str:
    """A pom that names every jar and, by excluding all that they ask for, nothing else."""
    alone = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
    entries = "\n".join(
        f"<dependency><groupId>{jar.group}</groupId><artifactId>{jar.artifact}</artifactId>"
        f"<version>{jar.version}</version><type>{jar.kind}</type>"
        + (f"<classifier>{jar.classifier}</classifier>" if jar.classifier else "")
        + f"{alone}</dependency>"
        for jar in jars
    )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>waybill</groupId><artifactId>rocketmq-jars</artifactId><version>1</version>"
        f"<dependencies>\n{entries}\n</dependencies></project>\n"
    )


def ivy_document(jars: tuple[Jar, ...]) -> str:
    """The same for Ivy. Artifacts are named one by one, so packaging `bundle` (Guava…) is not left out."""
    modules: dict[tuple[str, str, str], list[Jar]] = {}
    for jar in jars:
        modules.setdefault((jar.group, jar.artifact, jar.version), []).append(jar)
    entries = "\n".join(_ivy_module(*module, members) for module, members in modules.items())
    return (
        '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">'
        '<info organisation="waybill" module="rocketmq-jars"/>'
        '<configurations><conf name="default"/></configurations>'
        f"<dependencies>\n{entries}\n</dependencies></ivy-module>\n"
    )


def _ivy_module(group: str, artifact: str, version: str, members: list[Jar]) -> str:
    artifacts = "".join(
        f'<artifact name="{escape(artifact)}" type="{jar.kind}" ext="{jar.kind}"'
        + (f' m:classifier="{escape(jar.classifier)}"' if jar.classifier else "")
        + "/>"
        for jar in members
    )
    return (
        f'<dependency org="{escape(group)}" name="{escape(artifact)}" rev="{escape(version)}" '
        f'transitive="false" conf="default->default">{artifacts}</dependency>'
    )


if __name__ == "__main__":
    for wanted in sys.argv[1:] or [VERSION]:
        fetch(wanted, report=print)
