# SPDX-License-Identifier: BSD-3-Clause
"""Two names of the state that have one array for some calls: other calls are no reason to distrust a trace."""

from typing import Any

import numpy as np
import pytest

import tracejit as tj


class Box:
    a: Any
    b: Any


@pytest.mark.parametrize("shared", [(5, 6), (0, 1, 5), (3,), range(9)])
def test_each_has_its_traces_and_nothing_is_warned_of(shared: Any) -> None:
    box = Box()

    @tj.dlaccelerate(audit=False)
    def program(x: Any) -> Any:
        box.a[1:] *= 2
        box.b[:] = box.b + x[0]
        return box.a * x

    for call in range(9):
        box.a = tj.dlarray(np.full(3, 1.0 + call))
        box.b = box.a if call in shared else tj.dlarray(np.ones(3))
        a = np.full(3, 1.0 + call)
        b = a if call in shared else np.ones(3)
        found = program(np.full(3, 3.0))
        a[1:] *= 2
        b += 3
        np.testing.assert_array_equal(found.tolist(), a * 3)
        np.testing.assert_array_equal(box.a.tolist(), a)
        np.testing.assert_array_equal(box.b.tolist(), b)
    assert program.stats.traces <= 4
    assert not program.stats.uncompiled
