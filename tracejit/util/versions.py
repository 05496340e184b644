# SPDX-License-Identifier: BSD-3-Clause
"""Versions of packages whose functions give other results since one of them."""


def is_scipy(*version: int) -> bool:
    """Return whether the SciPy that is installed is of a version or later."""
    import scipy

    return tuple(map(int, scipy.__version__.split(".")[:2])) >= version
