# SPDX-License-Identifier: BSD-3-Clause
"""Complex dlarrays: promotion, parts as views, methods, writes, guards, warnings, and gradients that descend."""

import warnings
from typing import Any

import numpy as np
import pytest
from accelerated import dlaccelerate

import tracejit as tj
from tracejit import dlarray

Z = np.array([1.0 + 2.0j, 3.0 - 1.0j, -0.0 + 2.0j])


def replayed(function: Any, *arrays: np.ndarray) -> Any:
    """Return the result of a replay, on copies of the arrays."""
    accelerated = dlaccelerate(function)
    for _ in range(3):
        found = accelerated(*[dlarray(array.copy()) for array in arrays])
    assert accelerated.stats.hits > 0
    return found


def same(have: Any, want: Any) -> None:
    have = np.asarray(have)
    want = np.asarray(want)
    assert (have.dtype, have.shape) == (want.dtype, want.shape)
    np.testing.assert_allclose(have, want, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("real", ["float32", "float64", "int8", "int64", "bool"])
@pytest.mark.parametrize("kind", ["complex64", "complex128"])
def test_promotion_is_numpys(real: str, kind: str) -> None:
    x, z = np.ones(2, real), np.ones(2, kind)
    assert (dlarray(x) + dlarray(z)).dtype == (x + z).dtype
    assert (
        np.where(dlarray([True, False]), dlarray(x), dlarray(z)).dtype == np.where([True, False], x, z).dtype
    )
    for number in (2, 2.0, 2.0j):
        assert (dlarray(z) * number).dtype == (z * number).dtype
        assert (dlarray(x) * number).dtype == (x * number).dtype
    assert dlarray([1, 2j]).dtype == np.complex128
    assert dlarray(2j).item() == 2j


def test_methods_and_attributes() -> None:
    z = dlarray(Z, "B")
    for name in ("real", "imag"):
        same(getattr(z, name), getattr(Z, name))
        assert getattr(z, name).format == "B"
    same(z.conj(), Z.conj())
    same(z.conjugate(), Z.conj())
    same(np.angle(z), np.angle(Z))
    assert np.iscomplexobj(z) and not np.isrealobj(z)
    assert complex(z[0]) == Z[0]
    x = dlarray([1.0, 2.0])
    assert x.real is x and x.imag.tolist() == [0.0, 0.0] and x.conj().tolist() == [1.0, 2.0]


def test_parts_are_views() -> None:
    def function(z: Any) -> Any:
        z = z.copy()
        part = z.imag
        z.real[1:] = 5
        z.imag *= 2
        part[0] = 7
        z.real = z.real + 1
        return z, part

    want = function(Z)
    for found in (function(dlarray(Z)), tj.dlfeval(function, dlarray(Z)), replayed(function, Z)):
        for have, expected in zip(found, want, strict=True):
            same(have, expected)


def test_writes_into_arguments_reach_the_caller() -> None:
    def step(z: Any) -> Any:
        z.real[0] = 7
        z *= 1j
        return z.sum()

    mine, theirs = dlarray(Z.copy()), Z.copy()
    accelerated = dlaccelerate(step)
    for _ in range(4):
        same(accelerated(mine), step(theirs))
        same(mine, theirs)
    assert accelerated.stats.hits > 0


def test_constants_differ_by_the_signs_of_zeros() -> None:
    def function(z: Any) -> Any:
        return np.sqrt(z * 0 - 1 + complex(0.0, 0.0)), np.sqrt(z.real * 0 + complex(-1.0, -0.0))

    for have, want in zip(replayed(function, Z.real + 0j), function(Z.real + 0j), strict=True):
        np.testing.assert_array_equal(np.asarray(have), want)


def test_a_value_decides() -> None:
    @dlaccelerate
    def choose(z: Any) -> Any:
        return z * 2 if z.sum() == 4.0 + 3.0j else z

    for _ in range(3):
        same(choose(dlarray(Z)), Z * 2)
        same(choose(dlarray(Z * 1j)), Z * 1j)


def test_a_cast_to_real_numbers_warns_as_numpys_does() -> None:
    with pytest.warns(np.exceptions.ComplexWarning):
        same(dlarray(Z).astype(float), Z.real)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same(replayed(lambda z: z.astype(np.float32), Z), Z.real.astype(np.float32))
    same(dlarray(Z).astype(bool), Z.astype(bool))
    with pytest.raises(TypeError):
        float(dlarray(Z)[0])


class TestGradients:
    def test_descends(self) -> None:
        target = np.array([2.0 - 1.0j, 0.5j, 1.0])

        @dlaccelerate
        def step(z: Any) -> Any:
            loss = np.sum(np.abs(np.exp(z) - np.exp(target)) ** 2)
            return loss, z - 0.005 * tj.dlgradient(loss, z)

        z = dlarray(target + 0.1 - 0.1j)
        first, z = step(z)
        for _ in range(200):
            last, z = step(z)
        assert float(last) < 1e-3 * float(first)

    def test_is_the_sum_of_both_derivatives(self) -> None:
        def loss(z: Any) -> Any:
            return (np.abs(z) ** 3 + z.real * z.imag).sum()

        gradient = tj.dlfeval(lambda z: tj.dlgradient(loss(z), z), dlarray(Z))
        step = 1e-6
        along = [
            (np.array([(loss(Z + d) - loss(Z - d)) / (2 * step) for d in unit * step * np.eye(3)]))
            for unit in (1, 1j)
        ]
        np.testing.assert_allclose(np.asarray(gradient), along[0] + 1j * along[1], rtol=1e-8)

    def test_by_real_numbers_is_real(self) -> None:
        gradient = tj.dlfeval(lambda x: tj.dlgradient(np.abs(x * (1 + 2j)).sum(), x), dlarray([1.0, -2.0]))
        assert gradient.dtype == np.float64
        np.testing.assert_allclose(np.asarray(gradient), np.sqrt(5) * np.array([1, -1]))

    def test_of_a_gradient(self) -> None:
        def length(z: Any) -> Any:
            return np.sum(np.abs(tj.dlgradient(np.sum(np.abs(z) ** 2), z)) ** 2)

        found = tj.dlfeval(lambda z: tj.dlgradient(length(z), z), dlarray(Z))
        np.testing.assert_allclose(np.asarray(found), 8 * Z)

    def test_at_zero(self) -> None:
        assert tj.dlfeval(lambda z: tj.dlgradient(abs(z).sum(), z), dlarray([0j])).tolist() == [0j]

    def test_of_a_linear_system(self) -> None:
        rng = np.random.default_rng(0)
        a, b = (rng.normal(size=(2, *shape)) for shape in ((3, 3), (3,)))
        a, b = a[0] + 1j * a[1], b[0] + 1j * b[1]

        def loss(a: Any, b: Any) -> Any:
            return np.sum(np.abs(np.linalg.solve(a, b)) ** 2) + np.abs(np.linalg.inv(a)).sum()

        same(replayed(lambda a, b: np.linalg.solve(a, b), a, b), np.linalg.solve(a, b))
        gradient = np.asarray(tj.dlfeval(lambda a: tj.dlgradient(loss(a, dlarray(b)), a), dlarray(a)))
        for at in ((0, 1), (2, 2)):
            for unit, part in ((1, gradient[at].real), (1j, gradient[at].imag)):
                d = np.zeros((3, 3), complex)
                d[at] = 1e-6 * unit
                assert np.isclose(part, (loss(a + d, b) - loss(a - d, b)) / 2e-6, rtol=1e-6)


def test_factors_are_numpys_where_there_is_no_kernel() -> None:
    for function in (np.linalg.det, np.linalg.eigvals, lambda z: np.linalg.svd(z)[1], np.linalg.pinv):
        square = np.outer(Z, Z.conj()) + np.diag([1, 2j, 3])
        same(function(dlarray(square)), function(square))
        same(replayed(function, square), function(square))


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128], ids=lambda dtype: dtype.__name__)
def test_gradients_of_angles_of_tiny_and_huge_numbers(dtype: Any) -> None:
    """The square of the distance from the origin was 0 or infinite."""
    sizes = (
        [1e-36, 1e-22, 1e-19, 1.0, 1e19, 1e36]
        if dtype is np.complex64
        else [1e-306, 1e-160, 1.0, 1e154, 1e306]
    )
    z = (np.array([0.6 + 0.8j, 1j, -1.0, 0.28 - 0.96j])[:, None] * np.array(sizes)).astype(dtype)
    parts = [z.real.copy(), z.imag.copy()]

    def gradients(z: Any, x: Any, y: Any) -> Any:
        return tj.dlgradient(np.angle(z).sum(), z), *tj.dlgradient(np.arctan2(y, x).sum(), [x, y])

    size = np.abs(z.astype(complex))
    turned = 1j * z.astype(complex) / size / size
    accelerated = dlaccelerate(gradients)
    for run in (lambda *given: tj.dlfeval(gradients, *given), accelerated, accelerated):
        whole, by_x, by_y = (tj.extractdata(part) for part in run(z, *parts))
        for have, want in ((whole, turned), (by_x, turned.real), (by_y, turned.imag)):
            np.testing.assert_allclose(
                have * size, want * size, rtol=1e-14 if dtype is np.complex128 else 1e-6, atol=1e-20
            )
