"""What a person or a script sees when a command fails: one clean message on stderr, one exit code, never a stack trace.

With --json the error is one JSON object on stdout as well. An exception that is not of our tree is a bug: exit code 6.
"""

from __future__ import annotations

import json
import sys
import traceback
from typing import Any

import typer
from typer.core import TyperGroup

from connect_core import log_lines
from connect_core.cli import output
from connect_core.cli.elsewhere import require_known_elsewhere
from connect_core.errors import ConfigError, Failure, WaybillError
from connect_core.masking import mask_secrets

UNEXPECTED = 6
INTERRUPTED = 130
_OF_ANOTHER_FORM = (KeyError, IndexError, TypeError, ValueError, AttributeError)
"""What a command meets that takes the answer of a server apart which is none of ours, or of another version."""


class Commands(TyperGroup):
    """The root of the commands: turns what they raise into messages and exit codes."""

    def invoke(self, ctx: Any) -> Any:
        try:
            if ctx.params.get("server"):
                require_known_elsewhere(self, ctx, [*ctx._protected_args, *ctx.args])
            return super().invoke(ctx)
        except WaybillError as error:
            code = error.exit_code
            _tell(ctx, error, _described(error))
        except KeyboardInterrupt:
            sys.stderr.write(f"{log_lines.line('Interrupted', 'error')}\n")
            code = INTERRUPTED
        except Exception as error:
            if type(error).__module__.startswith(("typer", "click")) or isinstance(error, BrokenPipeError):
                raise
            if ctx.params.get("server") and isinstance(error, _OF_ANOTHER_FORM):
                raise typer.Exit(_told_of_another_form(ctx, error)) from None
            code = UNEXPECTED
            failure = Failure.of(error)
            advice = "Run the command with --debug for a stack trace"
            _tell(ctx, error, {"kind": failure.kind, "what": failure.words, "next_step": advice})
        raise typer.Exit(code)


def _told_of_another_form(ctx: Any, error: Exception) -> int:
    """Says it, and gives the exit code."""
    from connect_core.remote.failures import of_another_form

    told = of_another_form(type(error).__name__, ctx.params["server"]).with_traceback(error.__traceback__)
    _tell(ctx, told, _described(told))
    return told.exit_code


def _described(error: WaybillError) -> dict[str, Any]:
    told: dict[str, Any] = {
        "kind": type(error).__name__,
        "what": error.what,
        "where": error.where,
        "next_step": error.next_step,
    }
    if isinstance(error, ConfigError):
        told["faults"] = [{"path": fault.path, "message": fault.message} for fault in error.faults]
    return told


def _tell(ctx: Any, error: BaseException, told: dict[str, Any]) -> None:
    chosen = ctx.find_root().params
    if chosen.get("debug"):
        sys.stderr.write(mask_secrets("".join(traceback.format_exception(error))))
    text = str(error) if isinstance(error, WaybillError) else f"{told['what']}. {told['next_step']}"
    shown = text if log_lines.is_json() else f"Error: {text}"
    sys.stderr.write(f"{log_lines.line(output.printable(shown), 'error', kind=told['kind'])}\n")
    if ctx.find_root().meta.get("json"):
        code = getattr(error, "exit_code", UNEXPECTED)
        sys.stdout.write(json.dumps({"error": {**told, "exit_code": code}}, ensure_ascii=False) + "\n")
