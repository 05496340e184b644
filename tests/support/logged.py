# SPDX-License-Identifier: BSD-3-Clause
"""A function whose log tests look at, and the lines of a log."""

import logging
import re

import tracejit as tj
from tracejit.util import logs


def steps(x, p):
    return tj.tanh(x) * p


HERE = f"{steps.__code__.co_filename}:{steps.__code__.co_firstlineno}"


def lines_of_log(caplog):
    """Return a function that gives the lines so far: level, event and text, with times as T."""
    caplog.set_level(logging.DEBUG, "tracejit")

    def taken():
        found = [
            (record.levelname, record.event, re.sub(r"\d+\.\d ms", "T", record.getMessage()))
            for record in caplog.records
        ]
        caplog.clear()
        assert {event for _, event, _ in found} <= set(logs.EVENTS)
        return found

    return taken
