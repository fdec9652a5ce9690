"""What a document says of a Schema Registry, as values. Nothing is asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from connect_core.config.addresses import faults_of
from connect_core.config.document_parts import DocumentPart
from connect_core.config.references import REFERENCE, fault_in, is_reference
from connect_core.config.units import Seconds
from connect_core.config.written import Place
from connect_core.sdk.values import Json
from connect_core.systems.tls import TlsCa

LONGEST_TIMEOUT_S = 30


def _sound(text: str) -> str:
    if wrong := fault_in(text):
        raise ValueError(wrong)
    return text


def check_url(url: str) -> str:
    """The text itself when it may be where a registry is."""
    _sound(url)
    if not is_reference(url) and (urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname):
        raise ValueError("must begin with http:// or https:// and a host")
    if "@" in urlsplit(url).netloc:
        raise ValueError("must not hold a login: write username and password")
    return url


def check_secret(text: str) -> str:
    """The text itself when it is empty or a reference alone: documents are stored and shown."""
    if text and not REFERENCE.fullmatch(text):
        raise ValueError("is a secret in plain text; write a reference: ${env:NAME} or ${file:PATH#KEY}")
    return _sound(text)


def unallowed_registries(data: Json, allowed: Sequence[str]) -> Iterator[tuple[Place, str]]:
    """What is wrong with where a document looks for schemas, where only some servers may be named (`addresses`)."""
    for part in ("parse", "encode") if allowed else ():
        given = data.get(part)
        registry = given.get("registry") if isinstance(given, dict) else None
        if isinstance(registry, dict):
            yield from (((part, "registry", "url"), wrong) for wrong in faults_of(registry.get("url"), allowed))


class Registry(DocumentPart):
    """A Schema Registry: where it is, and who asks."""

    url: Annotated[str, AfterValidator(check_url)] = Field(
        description="Where a Schema Registry is, whose REST API is Confluent's.", examples=["http://127.0.0.1:8081"]
    )
    username: Annotated[str, AfterValidator(_sound)] = Field(default="", description="Who asks it; empty: anybody.")
    password: Annotated[str, AfterValidator(check_secret)] = Field(default="", description="Of that user.")
    tls_ca: TlsCa = ""
    timeout: Seconds = Field(
        default=3.0, gt=0, le=LONGEST_TIMEOUT_S, description="For each of its answers. Nothing is asked twice in a run."
    )


class SubjectRegistry(Registry):
    """And what is written there."""

    subject: str = Field(default="", max_length=500, description="Under which the schema is; by default strategy.")
    strategy: Literal["topic", "record", "topic-record"] = Field(
        default="topic",
        description="Without subject: topic is TOPIC-value, record the name of the record, topic-record TOPIC-NAME.",
    )
    auto_register: bool = Field(
        default=False,
        strict=True,
        description="Whether `apply` registers a schema that is not there; else that is an error.",
    )
