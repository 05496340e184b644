# SPDX-License-Identifier: BSD-3-Clause
"""Traps: what a function changes outside, and reads for that change only or not at all.

After each call everything outside is as after the plain function, or a warning says that it is not.
"""

import collections
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from changing_programs import MODULE, REPLAYED, TOLD, frozen

import tracejit as tj


def followed(body: str, accelerated: Callable[[Any], Any]) -> tuple[list[Any], Any]:
    """Return what was outside after each of 12 calls, and the function."""
    names: dict[str, Any] = {"collections": collections}
    exec(MODULE.replace("BODY", body), names)
    program, outside, reset = names["make"](accelerated)
    found = []
    for call in range(12):
        if call in (4, 8):
            reset()
        result = program(np.full(2, float(call)))
        found.append([frozen(result), frozen(outside())])
    return found, program


@pytest.mark.sampled
@pytest.mark.parametrize("body", REPLAYED)
def test_what_replays_repeat(body: str) -> None:
    found, program = followed(body, tj.dlaccelerate(audit=False))
    assert found == followed(body, lambda fun: fun)[0]
    assert program.stats.hits >= 2
    assert not program.stats.uncompiled


@pytest.mark.sampled
@pytest.mark.parametrize("body", TOLD)
def test_what_replays_do_not_repeat_is_told(body: str) -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found, program = followed(body, tj.dlaccelerate(audit=False))
    (warning,) = told
    if issubclass(warning.category, tj.NotAcceleratedWarning):
        assert found == followed(body, lambda fun: fun)[0]
    else:
        assert issubclass(warning.category, tj.LostChangeWarning)
        assert program.stats.hits == 10
