# SPDX-License-Identifier: BSD-3-Clause
"""tj.fft against scipy.fft: cosine and sine transforms of all types, sizes and norms, and their derivatives."""

from typing import Any

import numpy as np
import pytest
import scipy.fft
from accelerated import dlaccelerate
from effort import by_turns

import tracejit as tj

RNG = np.random.default_rng(8)
NAMES = ("dct", "dst", "idct", "idst")


@pytest.mark.sampled
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 8, 9])
@pytest.mark.parametrize("kind", [1, 2, 3, 4])
@pytest.mark.parametrize("name", NAMES)
def test_values_are_those_of_scipy(name: str, kind: int, size: int) -> None:
    ours, theirs = getattr(tj.fft, name), getattr(scipy.fft, name)
    x = RNG.normal(size=(2, size, 3))
    operands = x, x + 1j * x[::-1], x.astype(np.float32)
    lengths, norms = (None, size + 2, max(size - 1, 1)), (None, "ortho", "forward", "backward")
    for n, norm, orthogonalize, given in by_turns(lengths, norms, (None, True, False), operands):
        if (n or size) < 2 and kind == 1 and "dct" in name:
            continue
        options = {"axis": 1, "norm": norm, "orthogonalize": orthogonalize}
        want = theirs(given.real, kind, n, **options)
        if given.dtype.kind == "c":  # of complex numbers SciPy leaves orthogonalize out
            want = want + 1j * theirs(given.imag, kind, n, **options)
        have = ours(given, kind, n, **options)
        assert have.dtype == want.dtype
        near = 1e-5 if given.dtype == np.float32 else 1e-12
        np.testing.assert_allclose(tj.extractdata(have), want, rtol=near, atol=near * 10)


@pytest.mark.parametrize("name", NAMES)
def test_derivatives_replays_and_labels(name: str) -> None:
    x = RNG.normal(size=(2, 5))
    for kind in (1, 2, 3, 4):
        of = lambda x, kind=kind: getattr(tj.fft, name)(x, kind, norm="ortho")
        tj.testing.check_gradients(lambda x, of=of: (np.sin(of(x)) * of(x)).sum(), x)
        v = RNG.normal(size=x.shape)
        tangent = tj.jvp(of, (x,), (v,))[1]
        np.testing.assert_allclose(tj.extractdata(tangent), tj.extractdata(of(v)), rtol=1e-10, atol=1e-12)
        step = dlaccelerate(of)
        for _ in range(3):
            np.testing.assert_allclose(tj.extractdata(step(x)), tj.extractdata(of(x)), rtol=1e-10, atol=1e-12)
        assert step.stats.hits > 0
    assert getattr(tj.fft, name)(tj.dlarray(x, "CT")).format == "CT"


@pytest.mark.parametrize("name", ["dctn", "dstn", "idctn", "idstn"])
def test_several_axes(name: str) -> None:
    x = RNG.normal(size=(3, 4, 5))
    for options in (
        {},
        {"axes": (0, 2)},
        {"s": (2, 6)},
        {"s": (4,), "axes": 1},
        {"axes": -1, "norm": "ortho"},
    ):
        want = getattr(scipy.fft, name)(x, 2, **options)
        have = getattr(tj.fft, name)(x, 2, **options)
        np.testing.assert_allclose(tj.extractdata(have), want, rtol=1e-11, atol=1e-12)


def test_fourier_transforms_are_those_of_numpy() -> None:
    x: Any = RNG.normal(size=(4, 6))
    for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
        want = getattr(scipy.fft, name)(x, 5, 0, "ortho")
        np.testing.assert_allclose(tj.extractdata(getattr(tj.fft, name)(x, 5, 0, "ortho")), want, atol=1e-12)
    for name in ("fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn"):
        want = getattr(scipy.fft, name)(x)
        np.testing.assert_allclose(tj.extractdata(getattr(tj.fft, name)(x)), want, atol=1e-12)
    assert (tj.fft.ifftshift(tj.fft.fftshift(x)) == x).all() and tj.fft.fftshift(x, axes=0).shape == (4, 6)
    assert tj.fft.rfftfreq(4).tolist() == [0.0, 0.25, 0.5]
