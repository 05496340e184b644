# SPDX-License-Identifier: BSD-3-Clause
"""The error of functions under NumPy's names for arguments that they do not support."""

from typing import NoReturn

from tracejit.errors import ArgumentError, TraceJitError


def refuse(function: str, reason: str, error: type[TraceJitError] = ArgumentError) -> NoReturn:
    """Raise the error of a function.

    Args:
        function: its name.
        reason: what is wrong, and what to do.
        error: a class that derives from what NumPy raises, where it raises an error too.

    Raises:
        TraceJitError: of the class, in the name of the function, with the reason.
    """
    raise error(f"{function}: {reason}.") from None
