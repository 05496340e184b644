# SPDX-License-Identifier: BSD-3-Clause
"""Arrays on a device whose elements the host looks at, in computed places and calls of NumPy, and views of them."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from device_cases import agree
from fake_driver import FakeLibrary
from llvm_texts import NEEDS_LLVM_22

import tracejit as tj

F32 = np.float32
pytestmark = NEEDS_LLVM_22
LOOKS: dict[str, Callable[[Any], Any]] = {
    "a view that is returned": lambda x: x.T,
    "a part that is returned": lambda x: x[1:, ::2],
    "a row at a computed place": lambda x: x[x[:, 0].argmax()],
    "an element at computed places": lambda x: x[x[:, 0].argmax(), x[0].argmin()],
    "a part of computed rows": lambda x: x[x[:, 0].argmax(), 1:],
    "a mask": lambda x: x[x > 0],
    "index arrays": lambda x: x[x[:, 0].argsort(), x[0].argsort()[:3]],
    "bits": lambda x: x.view(np.int32),
    "parts of complex numbers": lambda x: (x + 1j * x).astype(np.complex64).view(np.float32),
    "windows": lambda x: np.lib.stride_tricks.sliding_window_view(x, 2, axis=0),
    "a call of NumPy": lambda x: np.linalg.qr(x @ x.T)[1],
}


class _Holder:
    """An object with an array."""

    kept: Any = None
    parts: Any = None


@pytest.mark.parametrize("name", LOOKS)
def test_a_look_at_an_array_on_the_device(fake: FakeLibrary, name: str) -> None:
    """Outside functions, in them, and as what a function meets besides its arguments."""
    look, x, holder = LOOKS[name], np.random.default_rng(0).standard_normal((3, 4)).astype(F32), _Holder()
    want = look(x)
    holder.kept = tj.gpu(x)
    captured = tj.dlaccelerate(lambda y: (look(holder.kept), y * 2))
    ways: list[Callable[[], Any]] = [
        lambda: look(tj.gpu(x)),
        lambda: tj.dlfeval(look, tj.gpu(x)),
        *[lambda: captured(tj.gpu(x))[0]] * 4,
    ]
    for way in ways:
        found = way()
        assert found.device == "cuda:0"
        agree([np.asarray(found)], [want])


def test_a_view_of_an_array_that_is_met_stays_on_the_device(fake: FakeLibrary) -> None:
    """Also one that goes by no op, and in recordings as in replays."""
    there, here = _Holder(), _Holder()

    def step(holder: _Holder, x: Any) -> Any:
        holder.kept = holder.kept * F32(0.5) + x
        holder.parts = [holder.kept[holder.kept[:, 0].argmin()], np.diagonal(holder.kept), x.view(np.int32)]
        holder.parts[0] += 1
        return holder.kept.sum()

    there.kept, here.kept = tj.gpu(np.eye(3, dtype=F32)), np.eye(3, dtype=F32)
    function = tj.dlaccelerate(lambda x: step(there, x))
    for number in range(6):
        x = np.sin(np.arange(9, dtype=F32).reshape(3, 3) + number)
        agree([np.asarray(function(tj.gpu(x)))], [np.asarray(step(here, x))])
        for have, want in zip([there.kept, *there.parts], [here.kept, *here.parts], strict=True):
            assert have.device == "cuda:0"
            agree([np.asarray(have)], [want])
    assert function.stats.hits == 4


def _written_through(write: Callable[[Any], Any]) -> Callable[[_Holder, Any], Any]:
    def step(holder: _Holder, x: Any) -> Any:
        holder.kept = holder.kept * F32(0.5) + x
        write(holder.kept)
        return holder.kept.sum(axis=0)

    return step


def _row(x: Any) -> None:
    row = x[2]
    row += 1


def _raveled(x: Any) -> None:
    x.ravel()[3] = 5


def _part_as_a_row(x: Any) -> None:
    part = x[1:].reshape(-1)
    part[::2] *= 2


def _copied_by_a_reshape(x: Any) -> None:
    """NumPy has no view here."""
    x.T.reshape(-1)[0] = 7
    x[:, 1:].reshape(-1)[:] = 9


def _column_of_a_transpose(x: Any) -> None:
    column = x.T[..., None][:, 1]
    column -= 3


@pytest.mark.parametrize("place", [tj.gpu, tj.dlarray], ids=["gpu", "host"])
@pytest.mark.parametrize(
    "write", [_row, _raveled, _part_as_a_row, _copied_by_a_reshape, _column_of_a_transpose]
)
def test_writes_through_reshapes_reach_what_is_computed_on_the_device(
    fake: FakeLibrary, write: Callable[[Any], Any], place: Callable[[np.ndarray], Any]
) -> None:
    """In dlfeval, and in recordings and replays, as in NumPy."""
    step = _written_through(write)
    there, evaluated, here = [_Holder() for _ in range(3)]
    there.kept, evaluated.kept, here.kept = [f(np.eye(3, dtype=F32)) for f in (place, place, np.copy)]
    function = tj.dlaccelerate(lambda x: step(there, x))
    for number in range(5):
        x = np.sin(np.arange(9, dtype=F32).reshape(3, 3) + number)
        want = step(here, x)
        for found in (function(place(x)), tj.dlfeval(step, evaluated, place(x))):
            agree([np.asarray(found)], [want])
        for holder in (there, evaluated):
            agree([np.asarray(holder.kept)], [here.kept])
    assert function.stats.hits == 3


@pytest.mark.parametrize("options", [{}, {"target": "cuda"}, None])
def test_an_array_without_axes_is_written(fake: FakeLibrary, options: dict[str, Any] | None) -> None:
    """As an argument of the host or on the device; a number, such as x.sum(), is not."""

    def step(x: Any, y: Any) -> Any:
        x[...] = x + y
        x *= 2
        return x + 1

    function = tj.dlaccelerate(step, **options) if options is not None else partial(tj.dlfeval, step)
    place: Callable[[np.ndarray], Any] = np.copy if options else tj.gpu
    there, here = place(np.array(1.0)), np.array(1.0)
    for number in range(4):
        want = step(here, np.float64(number))
        assert float(function(there, number)) == want and float(there) == here
    assert np.asarray(tj.gather(tj.gpu(np.array(1.0)))[...]).shape == ()


def test_a_ravel_of_turned_elements_is_a_copy(fake: FakeLibrary) -> None:
    def step(x: Any) -> Any:
        y = x * 2
        for part in (y[::-1].ravel(), np.ravel(y.T), np.array(y.T, order="C", copy=None)):
            part += 1
        y.ravel()[0] = 7
        return y

    x = np.arange(6, dtype=F32).reshape(2, 3)
    for way in (partial(tj.dlfeval, step), tj.dlaccelerate(step)):
        for _ in range(3):
            agree([np.asarray(way(tj.gpu(x)))], [step(x)])
