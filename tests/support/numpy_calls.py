# SPDX-License-Identifier: BSD-3-Clause
"""Calls of NumPy's functions that dlarrays answer."""

from typing import Any

import numpy as np

from tracejit import dlarray

INTEGERS = ("bitwise_and", "bitwise_or", "bitwise_xor", "invert")

ONE = np.arange(6.0).reshape(2, 3) - 1.0
CALLS: dict[Any, Any] = {
    np.sum: [((ONE, 0), {}), ((ONE,), {"axis": 1, "keepdims": True}), ((ONE, None, np.float32), {})],
    np.prod: [((ONE,), {})],
    np.mean: [((ONE, -1), {})],
    np.var: [((ONE, 0), {"ddof": 1})],
    np.std: [((ONE, 1, None, None, 1), {})],
    np.max: [((ONE,), {"axis": (0, 1)})],
    np.min: [((ONE, 1), {})],
    np.ptp: [((ONE, 1), {})],
    np.any: [((ONE, 0), {})],
    np.all: [((ONE, 0), {})],
    np.argmax: [((ONE, 1), {})],
    np.argmin: [((ONE,), {})],
    np.count_nonzero: [((ONE,), {"axis": 0})],
    np.cumsum: [((ONE, 1), {})],
    np.linalg.norm: [((ONE,), {}), ((ONE,), {"axis": 1})],
    np.dot: [((ONE, ONE.T), {})],
    np.vdot: [((ONE, ONE), {})],
    np.inner: [((ONE, ONE), {})],
    np.outer: [((ONE[0], ONE[1]), {})],
    np.tensordot: [((ONE, ONE.T, 1), {})],
    np.einsum: [(("ij,kj->ik", ONE, ONE), {})],
    np.trace: [((ONE,), {"offset": 1})],
    np.diag: [((ONE,), {}), ((ONE[0], 1), {})],
    np.tril: [((ONE, -1), {})],
    np.triu: [((ONE,), {})],
    np.reshape: [((ONE, (3, 2)), {}), ((ONE, -1), {"order": "C"})],
    np.ravel: [((ONE,), {})],
    np.transpose: [((ONE,), {}), ((ONE, (1, 0)), {})],
    np.swapaxes: [((ONE, 0, 1), {})],
    np.moveaxis: [((ONE, 0, 1), {})],
    np.broadcast_to: [((ONE, (4, 2, 3)), {})],
    np.squeeze: [((ONE[:1],), {"axis": 0})],
    np.expand_dims: [((ONE, 1), {})],
    np.concatenate: [(((ONE, ONE),), {"axis": 1})],
    np.stack: [(([ONE, ONE], 1), {})],
    np.vstack: [(([ONE, ONE],), {})],
    np.hstack: [(([ONE, ONE],), {})],
    np.flip: [((ONE, 1), {})],
    np.copy: [((ONE,), {})],
    np.roll: [((ONE, 1, 0), {})],
    np.pad: [
        ((ONE, 1), {"constant_values": 2.0}),
        ((ONE, ((1, 0), (0, 2)), "edge"), {}),
        ((ONE, 1, "linear_ramp"), {"end_values": 2.0}),
        ((ONE, (1, 0), "mean"), {"stat_length": 2}),
        ((ONE, 1, "reflect"), {"reflect_type": "odd"}),
    ],
    np.repeat: [((ONE, 2, 1), {})],
    np.tile: [((ONE, (1, 2)), {})],
    np.atleast_1d: [((ONE,), {})],
    np.atleast_2d: [((ONE[0],), {})],
    np.atleast_3d: [((ONE,), {})],
    np.take: [((ONE, [0, 2], 1), {})],
    np.take_along_axis: [((ONE, np.array([[0], [2]]), 1), {})],
    np.where: [((ONE > 0, ONE, 0.5), {})],
    np.clip: [((ONE, 0, 2), {}), ((ONE,), {"min": 0, "max": None}), ((ONE, None, 1), {})],
    np.round: [((ONE / 3, 1), {})],
    np.zeros_like: [((ONE,), {}), ((ONE, np.float32), {})],
    np.ones_like: [((ONE,), {"shape": (2,)})],
    np.full_like: [((ONE, 3), {})],
    np.empty_like: [],
}


def wrap(x: Any) -> Any:
    """Return an argument with dlarrays in place of ndarrays."""
    if isinstance(x, np.ndarray):
        return dlarray(x)
    return type(x)(wrap(part) for part in x) if isinstance(x, (list, tuple)) else x
