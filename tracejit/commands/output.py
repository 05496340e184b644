# SPDX-License-Identifier: BSD-3-Clause
"""Output of commands: results and errors as text or as JSON, and the exit code.

Results go to standard output, everything else to standard error. With --json, standard output has one object, whether
the command succeeds (``{"schema": 1, "command": ..., "result": ...}``) or fails (``"error": {"kind": ..., "message":
...}`` instead of the result).
"""

import argparse
import dataclasses
import errno
import json
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from tracejit.errors import TraceJitError, TraceJitWarning
from tracejit.util.files import IS_WINDOWS
from tracejit.util.named_tuples import NamedTuple

SCHEMA = 1
DONE, FAILED, USAGE = 0, 1, 2


class Result(NamedTuple):
    """The result of a command.

    data    for --json: JSON values, dataclasses and paths
    text    the same as text
    code    the exit code
    note    an additional message, for standard error or as "note" of the JSON object
    """

    data: Any
    text: str
    code: int = DONE
    note: str = ""


class CommandError(Exception):
    """A failure of a command.

    Args:
        kind: its name in the JSON object.
        message: the text of the error.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def run(arguments: argparse.Namespace) -> int:
    """Run the command of parsed arguments, print its result, and return the exit code."""
    command, as_json = arguments.command, "json" in arguments
    try:
        with _warnings_as_messages(command):
            result = arguments.run(arguments)
    except CommandError as error:
        return fail(command, as_json, error.kind, str(error))
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


def fail(command: str, as_json: bool, kind: str, message: str) -> int:
    """Print the error of a command, and return the exit code."""
    if as_json:
        _say_json({"schema": SCHEMA, "command": command, "error": {"kind": kind, "message": message}})
    else:
        say(f"tracejit {command}: {message}", sys.stderr)
    return FAILED


@contextmanager
def _warnings_as_messages(command: str) -> Iterator[None]:
    """Print warnings of tracejit as messages, whatever the warning filters say."""

    def show(
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
        warnings.showwarning = show
        yield


def say(text: str, stream: TextIO | None) -> None:
    """Print text. Once the reader has closed the stream, as after `| head`, nothing more is printed.

    Raises:
        OSError: if standard output cannot be written, as on a full disk. A failure of standard error is ignored.
    """
    if stream is None:  # it was closed when Python started
        return
    # File names may hold characters that the stream cannot encode.
    encoding = stream.encoding or "utf-8"
    try:
        print(text.encode(encoding, "backslashreplace").decode(encoding), file=stream, flush=True)
    except OSError as error:
        # Python flushes the stream again at exit, so it now leads to nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        is_closed = isinstance(error, BrokenPipeError) or (IS_WINDOWS and error.errno == errno.EINVAL)
        if stream is sys.stdout and not is_closed:
            raise


def _say_json(value: Any) -> None:
    say(json.dumps(value, default=_plain), sys.stdout)


def _plain(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    raise TypeError(f"{type(value).__name__} cannot be part of a result")
