"""One run of a connector as a Spark application: `spark-submit … replicate.py NAME [--task N] …`

Opens home and ledger as `waybill run` does, moves what is there, says the same and ends with the same exit codes. The
process is the driver: lanes are tasks of its own Spark. It dies with its JVM, and with its caller where one is named.
`engine.submit` knows its arguments and reads its result.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from connect_core import log_lines
from connect_core.engine import driver, submit
from connect_core.engine.parent import die_with
from connect_core.errors import Failure, WaybillError
from connect_core.sdk.values import LIVE, Json

UNEXPECTED = 6


def main(arguments: Sequence[str] | None = None) -> int:
    given = _parser().parse_args(arguments)
    die_with(os.getppid())
    try:
        with _bound_to(given.caller):
            told = _moved(given)
    except WaybillError as error:
        return _failed(given, error, f"Error: {error}", error.exit_code)
    except Exception as error:
        return _failed(given, error, Failure.of(error).words, UNEXPECTED)
    if given.result:
        submit.write_result(given.result, told)
    if not given.quiet:
        _say_summary(told)
    return 0


def _moved(given: argparse.Namespace) -> Json:
    from connect_core.service import application, run_report
    from connect_core.service.opened import working

    submitted = application.Submitted(
        given.connector, given.task, given.stream, given.attempt_of, given.accept_gaps, given.window, given.engine
    )
    with working() as opened:
        return application.run(opened, submitted, run_report.listener(_say))


@contextmanager
def _bound_to(caller: driver.Driver | None) -> Iterator[None]:
    """Ends this process with its caller: when that is killed, nobody waits for this run any more."""
    if caller is None:
        yield
    else:
        with driver.killed_with(caller):
            yield


def _failed(given: argparse.Namespace, error: Exception, words: str, exit_code: int) -> int:
    if given.result:
        submit.write_result(given.result, Failure.of(error), exit_code)
    if not given.quiet:
        _say(words)
    return exit_code


def _say(text: str) -> None:
    print(log_lines.line(text), file=sys.stderr, flush=True)


def _say_summary(told: Json) -> None:
    from connect_core.service.run_report import lines

    print("\n".join(lines(told)), flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="replicate.py", description="One run of a connector as a Spark application.")
    parser.add_argument("connector", metavar="NAME", help="name of the connector")
    parser.add_argument("--task", type=int, help="one of its tasks; by default all")
    parser.add_argument("--stream", default=LIVE, help="live, or a backfill or replay")
    parser.add_argument("--attempt-of", help="the run of a scheduler that this is an attempt of")
    parser.add_argument(
        "--accept-gaps", action="store_true", help="record lost offsets as gaps and continue after them, this run only"
    )
    parser.add_argument(
        "--window", type=float, metavar="SECONDS", help="keep running for SECONDS and follow new records"
    )
    parser.add_argument("--engine", default="", help="name of the engine to use instead of the document's")
    parser.add_argument("--result", type=Path, help="a file for the summary, or for the failure, as JSON")
    parser.add_argument("--quiet", action="store_true", help="leave it to the reader of the result to tell the end")
    parser.add_argument("--caller", type=driver.read, help="the process with which this run ends")
    return parser


if __name__ == "__main__":
    sys.exit(main())
