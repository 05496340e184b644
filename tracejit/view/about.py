# SPDX-License-Identifier: BSD-3-Clause
"""The date of a page, and the versions of the software that made it."""

import importlib.metadata
import platform
import time

import numpy as np


def about() -> list[tuple[str, str]]:
    """Return pairs of a name and a value."""
    return [
        ("made", time.strftime("%Y-%m-%d %H:%M")),
        ("tracejit", importlib.metadata.version("tracejit")),
        ("Python, NumPy", f"{platform.python_version()}, {np.__version__}"),
    ]
