# SPDX-License-Identifier: BSD-3-Clause
"""The effort of a run: the edges and a few examples, or, with pytest --long, everything."""

from typing import TypeVar

T = TypeVar("T")

LONG = False  # set by conftest.py before any test is imported


def sweep(few: T, everything: T) -> T:
    """Return how much to try in this run."""
    return everything if LONG else few
