# SPDX-License-Identifier: BSD-3-Clause
"""The inputs of a replay on the device."""

from collections.abc import Sequence
from typing import Any


def inputs_of(data: Sequence[Any], arguments: int) -> list[Any]:
    """Return data on the device: captured arrays, and those of the host, are copied to it where they do not fit.

    Args:
        data: of the arguments and then of the captured arrays.
        arguments: how many of them are arguments, whose layout the program knows.
    """
    from tracejit.runtime.cuda.arrays import DeviceArray, uploaded
    from tracejit.runtime.cuda.driver import driver

    on = driver()
    inputs: list[Any] = []
    for number, part in enumerate(data):
        if not isinstance(part, DeviceArray):
            inputs.append(uploaded(on, part))
        elif number >= arguments and not part.flags.c_contiguous:
            inputs.append(part.copy())
        else:
            inputs.append(part)
    return inputs
