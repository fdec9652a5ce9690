"""Settings, the home, and connector documents: read, checked with all faults at once, compared, resolved for a run.

    settings = load_settings(home)
    for checked in check_paths([Path("conf/connectors")], home, settings):
        ledger.apply(checked.document.name, checked.data, who=settings.user)
    resolved = resolve(load_document(connector.document), home, settings, connector.uid)
    source = systems.source(revealed(resolved.source))      # in the process that opens it, last of all

Sees the option models of systems, never their drivers.
"""

from connect_core.config.checking import (
    Checked,
    ExaminedBefore,
    check,
    check_beside,
    check_paths,
    check_together,
    load_document,
    taken_files,
)
from connect_core.config.differences import difference
from connect_core.config.diverting import diverted, single_writers, sink_changes
from connect_core.config.document import ConnectorDocument
from connect_core.config.document_errors import ALL
from connect_core.config.engines import EngineOptions, engine_for, engine_named
from connect_core.config.home import create_home, find_home, folder_of, require_home
from connect_core.config.ledger_url import database_url, sqlite_url
from connect_core.config.letter_keys import LetterCiphers, encrypted_with, named_keys, sealing_cipher
from connect_core.config.mask_keys import with_keys
from connect_core.config.neighbours import StreamBeside
from connect_core.config.references import masked, reveal, revealed
from connect_core.config.resolving import Resolved, resolve, resolve_source, with_policies
from connect_core.config.settings import Settings, load_settings, unknown_variables
from connect_core.config.written import Written, WrittenDocuments, read_paths, read_text

__all__ = [
    "ALL",
    "Checked",
    "ConnectorDocument",
    "EngineOptions",
    "ExaminedBefore",
    "LetterCiphers",
    "Resolved",
    "Settings",
    "StreamBeside",
    "Written",
    "WrittenDocuments",
    "check",
    "check_beside",
    "check_paths",
    "check_together",
    "create_home",
    "database_url",
    "difference",
    "diverted",
    "encrypted_with",
    "engine_for",
    "engine_named",
    "find_home",
    "folder_of",
    "load_document",
    "load_settings",
    "masked",
    "named_keys",
    "read_paths",
    "read_text",
    "require_home",
    "resolve",
    "resolve_source",
    "reveal",
    "revealed",
    "sealing_cipher",
    "single_writers",
    "sink_changes",
    "sqlite_url",
    "taken_files",
    "unknown_variables",
    "with_keys",
    "with_policies",
]
