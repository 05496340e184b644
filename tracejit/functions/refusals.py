# SPDX-License-Identifier: BSD-3-Clause
"""The error of functions under NumPy's names for arguments that they do not support."""

from typing import NoReturn

from tracejit.errors import ArgumentError


def refuse(function: str, reason: str) -> NoReturn:
    """Raise the error of a function.

    Raises:
        ArgumentError: in the name of the function, with the reason.
    """
    raise ArgumentError(f"{function}: {reason}.") from None
