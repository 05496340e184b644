# SPDX-License-Identifier: BSD-3-Clause
"""How commands say what they found: results as text or as JSON, errors, and an exit code.

Results go to standard output, all else to standard error. With --json there is one object on standard output, whether
a command succeeds (``{"schema": 1, "command": ..., "result": ...}``) or fails (with ``"error": {"kind": ..., "message":
...}`` in place of the result).
"""

import argparse
import dataclasses
import json
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from tracejit.errors import TraceJitError, TraceJitWarning

SCHEMA = 1
DONE, FAILED, USAGE = 0, 1, 2


class Result(NamedTuple):
    """What a command found.

    data    as data: what JSON holds, dataclasses and paths
    text    the same for the reader
    code    the exit code
    note    what there is to say besides, on standard error, or as "note" of the JSON object
    """

    data: Any
    text: str
    code: int = DONE
    note: str = ""


class CommandError(Exception):
    """A command cannot do what it is for.

    Args:
        kind: for programs that read the JSON object.
        message: for the reader.
        named: whether the command's name is printed before the message.
    """

    def __init__(self, kind: str, message: str, named: bool = True) -> None:
        super().__init__(message)
        self.kind = kind
        self.named = named


def run(arguments: argparse.Namespace) -> int:
    """Run the command of parsed arguments, say what it found, and return its exit code."""
    command, as_json = arguments.command, "json" in arguments
    try:
        with _warnings_said(command):
            result = arguments.run(arguments)
    except CommandError as error:
        return fail(command, as_json, error.kind, str(error), error.named)
    except TraceJitError as error:
        return fail(command, as_json, type(error).__name__, str(error))
    except OSError as error:
        where = "" if error.filename is None else f"{error.filename}: "
        return fail(command, as_json, "OSError", f"{where}{error.strerror or error}")
    except KeyboardInterrupt:
        return fail(command, as_json, "KeyboardInterrupt", "interrupted")
    if as_json:
        note = {"note": result.note} if result.note else {}
        _say_json({"schema": SCHEMA, "command": command, "result": result.data} | note)
    else:
        if result.text:
            say(result.text, sys.stdout)
        if result.note:
            say(f"tracejit {command}: {result.note}", sys.stderr)
    return int(result.code)


def fail(command: str, as_json: bool, kind: str, message: str, named: bool = True) -> int:
    """Say that a command failed, and return the exit code."""
    if as_json:
        _say_json({"schema": SCHEMA, "command": command, "error": {"kind": kind, "message": message}})
    else:
        say(f"tracejit {command}: {message}" if named else message, sys.stderr)
    return FAILED


@contextmanager
def _warnings_said(command: str) -> Iterator[None]:
    """Print warnings of tracejit as messages, whatever the filters make of them."""

    def said(
        message: Warning | str, category: type[Warning], filename: str, lineno: int, file: TextIO | None = None,
        line: str | None = None,
    ) -> None:  # fmt: skip
        if issubclass(category, TraceJitWarning):
            say(f"tracejit {command}: {message}", sys.stderr)
        else:
            usual(message, category, filename, lineno, file, line)

    with warnings.catch_warnings():
        usual = warnings.showwarning
        warnings.simplefilter("default", TraceJitWarning)
        warnings.showwarning = said
        yield


def say(text: str, stream: TextIO | None) -> None:
    """Print a line, or several; if nobody reads any more, as after `| head`, nothing is printed from then on.

    Raises:
        OSError: if standard output cannot be written, as on a full disk. Of standard error there is nobody to tell.
    """
    if stream is None:  # closed when Python began
        return
    # The name of a file need not be text that can be printed.
    encoding = stream.encoding or "utf-8"
    try:
        print(text.encode(encoding, "backslashreplace").decode(encoding), file=stream, flush=True)
    except OSError as error:
        # Python flushes once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        if stream is sys.stdout and not isinstance(error, BrokenPipeError):
            raise


def _say_json(value: Any) -> None:
    say(json.dumps(value, default=_plain), sys.stdout)


def _plain(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    raise TypeError(f"{type(value).__name__} is no part of a result")
