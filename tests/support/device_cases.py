# SPDX-License-Identifier: BSD-3-Clause
"""Functions that are run on a device, a real one or the stand-in, and compared with the CPU."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import tracejit as tj


def address(array: Any) -> int:
    """Return the address of the elements of an array on a device."""
    place: int = array.__cuda_array_interface__["data"][0]
    return place


def foreign(array: Any, **more: Any) -> Any:
    """Return an array of another library with the elements of one of ours."""
    interface = {**array.__cuda_array_interface__, **more}
    return type("Foreign", (), {"__cuda_array_interface__": interface, "keeps": array})()


class Case(NamedTuple):
    """A function, and the sizes of its arguments; `of` makes their dtype."""

    name: str
    function: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    dtype: str = "float32"

    def arrays(self) -> list[np.ndarray]:
        rng = np.random.default_rng(0)
        return [rng.standard_normal(shape).astype(self.dtype) for shape in self.shapes]


_SCALES = {2: 4e-3}
"""Where a size of numbers has few digits: a result that is rounded the other way differs by a thousandth."""


def agree(found: Any, want: Any, scale: float = 2e-5) -> None:
    """Compare results as those of other roundings are compared."""
    for have, expected in zip(found, want, strict=True):
        expected = np.asarray(expected)
        assert have.dtype == expected.dtype and have.shape == expected.shape
        if have.dtype.kind in "fc":
            rtol = max(scale, _SCALES.get(have.dtype.itemsize, 0.0))
            finite = np.where(np.isfinite(expected), expected, 0)
            atol = rtol * max(1.0, float(np.abs(finite).max(initial=0)))  # terms of sums may cancel
            np.testing.assert_allclose(have, expected, rtol=rtol, atol=atol)
        else:
            np.testing.assert_array_equal(have, expected)


def run_case(case: Case, calls: int = 4) -> None:
    """Call an accelerated function on the device and compare all calls with the CPU's function."""
    arrays = case.arrays()
    function = tj.dlaccelerate(case.function)
    want = tj.tree.flatten(tj.dlfeval(case.function, *map(tj.dlarray, arrays)))[0]
    inputs = tj.gpu(tuple(arrays))
    for _ in range(calls):
        results = tj.tree.flatten(function(*inputs))[0]
        assert all(array.device == "cuda:0" for array in results)
        agree([np.asarray(array) for array in results], want)
    assert function.hit_rate == 100 * (calls - 2) / calls


def _layer(w: Any, b: Any, x: Any) -> Sequence[Any]:
    loss = (tj.tanh(x @ w + b) ** 2).mean()
    return loss, *tj.dlgradient(loss, w, b)


def _normalised(x: Any, scale: Any) -> Sequence[Any]:
    centred = x - x.mean(axis=1, keepdims=True)
    y = scale * centred / tj.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5)
    return y, *tj.dlgradient((y**3).sum(), x, scale)


def _classified(x: Any) -> Sequence[Any]:
    loss = -tj.logsoftmax(x, axis=1)[:, 0].mean()
    return loss, tj.dlgradient(loss, x)


def _hessian(x: Any) -> Any:
    return tj.dlgradient((tj.dlgradient((x**4).sum(), x) ** 2).sum(), x)


FUNCTIONS = (
    Case("layer", _layer, ((3, 7), (7,), (5, 3))),
    Case("layer64", _layer, ((3, 7), (7,), (5, 3)), "float64"),
    Case("normalised", _normalised, ((3, 70), (70,))),
    Case("classified", _classified, ((19, 10),)),
    Case("softmax", lambda x: tj.softmax(x, axis=1), ((3, 130),)),
    Case("sums", lambda x: (x.sum(), x.sum(axis=0), x.max(axis=1)), ((6, 50),)),
    Case("moved", lambda x, y: (tj.tanh(x.T) * y, x[::2, 1:]), ((5, 3), (3, 5))),
    Case("hessian", _hessian, ((11,),)),
    Case("containers", lambda x: {"a": x + 1, "b": [x.sum()]}, ((4,),)),
)


class _Net:
    """A model whose attributes a step reads, writes in place and assigns; `move` says where they lie."""

    def __init__(self, move: Callable[[np.ndarray], Any]) -> None:
        self.w, self.momentum = move(np.full((3, 2), 0.5)), move(np.zeros((3, 2)))

    def step(self, x: Any, y: Any) -> Any:
        error = x @ self.w - y
        self.momentum = 0.9 * self.momentum + x.T @ error
        self.w -= 0.01 * self.momentum
        self.w[0] *= 0.99
        return (error**2).mean()


def check_class(place: Callable[[np.ndarray], Any]) -> None:
    """Check that attributes alone decide where a step runs, given what says where its arguments lie."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(20, 3)), rng.normal(size=(20, 2))
    there, here = _Net(tj.gpu), _Net(np.copy)
    step = tj.dlaccelerate(there.step)
    for _ in range(6):
        loss = step(place(x), place(y))
        assert loss.device == there.w.device == there.momentum.device == "cuda:0"
        np.testing.assert_allclose(tj.gather(loss), here.step(x, y), rtol=1e-12)
        np.testing.assert_allclose(tj.gather(there.w), here.w, rtol=1e-12)
