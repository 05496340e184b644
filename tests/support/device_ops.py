# SPDX-License-Identifier: BSD-3-Clause
"""Operations on arrays of a device, a real one or the stand-in, compared with their references."""

from typing import Any

import numpy as np
import pytest
from device_cases import agree
from op_cases import draw, graph_of

import tracejit as tj
from tracejit.ir import Builder, evaluate
from tracejit.ops import Op
from tracejit.ops.halves import takes_halves
from tracejit.ops.op import Sample
from tracejit.runtime.cuda.arrays import uploaded
from tracejit.runtime.cuda.driver import driver
from tracejit.traces.devices import compute

OTHER_DTYPES = ("float16", "int64", "bool", "complex64", "complex128")


def check_op(op: Op, sample: Sample, dtype: str) -> None:
    """Compare an operation, which is a program of one operation; skip it where it takes no such numbers.

    Few take numbers of 16 bits: recorders cast them for the others (record/halves.py).
    """
    if dtype == "float16" and not takes_halves(op):
        pytest.skip("computed in float32")

    def make(b: Builder, *values: Any) -> list[Any]:
        result = b.apply(op, values, dict(sample.params))
        return list(result) if isinstance(result, tuple) else [result]

    with np.errstate(all="ignore"):
        try:
            arrays = draw(op, sample, dtype)
            want = evaluate(graph_of(make, arrays), arrays)
        except (tj.DTypeError, np.exceptions.ComplexWarning):
            pytest.skip("not defined for this dtype")
    found = compute(op, [uploaded(driver(), array) for array in arrays], dict(sample.params))
    agree([part.host() for part in (found if isinstance(found, tuple) else (found,))], want)
