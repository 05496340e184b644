# SPDX-License-Identifier: BSD-3-Clause
"""The table of messages: how to provoke each error that a user can meet, and its exact text.

The rows stand in files by area, messages_ops.py and its siblings; those that need files, in messages_on_disk.py.
"""

import re
import traceback
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import messages_accelerate
import messages_arrays
import messages_complex
import messages_convolution
import messages_derivatives
import messages_devices
import messages_functions
import messages_host
import messages_interpolate
import messages_layers
import messages_linalg
import messages_loops
import messages_losses
import messages_movement
import messages_nn
import messages_numpy
import messages_ode
import messages_operands
import messages_ops
import messages_optim
import messages_record
import messages_scipy
import messages_sequences
import messages_signal
import messages_spatial
import messages_stats
import messages_traces
import messages_training

from tracejit.errors import TraceJitWarning

FOLDER = str(Path(__file__).parent)


class Row(NamedTuple):
    """A message: a call that meets it, the type of the error, and its text with <place> for a file and line."""

    provoke: Callable[[], object]
    error: type[Exception]
    text: str


class Outcome(NamedTuple):
    """The error that a row's call raised, and the raise statements that it came through: files and lines."""

    error: type[Exception] | None
    text: str
    statements: frozenset[tuple[Path, int]]


@cache
def outcome(row: Row) -> Outcome:
    """Return what the call of a row raises; a warning counts as an error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", TraceJitWarning)
            row.provoke()
    except Exception as error:
        text = re.sub(rf"{re.escape(FOLDER)}[/\\]messages_\w+\.py:\d+", "<place>", str(error))
        text = re.sub(r"\b0x[0-9a-f]{8,}", "<address>", text)
        return Outcome(type(error), text, frozenset(statements(error)))
    return Outcome(None, "", frozenset())


def statements(error: BaseException | None) -> set[tuple[Path, int]]:
    """Return where an error and those that it came from were raised."""
    if error is None:
        return set()
    last = traceback.extract_tb(error.__traceback__)[-1]
    return {(Path(last.filename), last.lineno or 0)} | statements(error.__context__)


TABLES = (
    messages_accelerate,
    messages_arrays,
    messages_complex,
    messages_convolution,
    messages_derivatives,
    messages_devices,
    messages_functions,
    messages_host,
    messages_interpolate,
    messages_layers,
    messages_linalg,
    messages_loops,
    messages_losses,
    messages_movement,
    messages_nn,
    messages_numpy,
    messages_ode,
    messages_operands,
    messages_ops,
    messages_optim,
    messages_record,
    messages_sequences,
    messages_scipy,
    messages_signal,
    messages_spatial,
    messages_stats,
    messages_traces,
    messages_training,
)
ROWS: tuple[Row, ...] = tuple([Row(*row) for table in TABLES for row in table.ROWS])
