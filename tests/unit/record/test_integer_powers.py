# SPDX-License-Identifier: BSD-3-Clause
"""Powers of integers by exponents that vary: NumPy refuses negative ones, in replays too."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj

NUMPYS = "Integers to negative integer powers are not allowed"


def each(power: Callable[[Any, Any], Any], x: Any, k: Any) -> Any:
    total = x * 0
    for number in k:
        total = total + power(x, number)
    return total


def handled(power: Callable[[Any, Any], Any], x: Any, k: Any) -> Any:
    try:
        return power(x, k)
    except ValueError:
        return x - 100


def in_place(x: Any, k: Any) -> Any:
    x = x.copy()
    x **= k
    return x


POWERS = [
    lambda x, k: x**k,
    np.power,
    in_place,
    lambda x, k: 2**k + x,
    lambda x, k: np.power.outer(x, k)[..., 0],
]
IDS = ["**", "power", "**=", "2**", "outer"]


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tj.TraceJitWarning)
        yield


def outcome(function: Callable[..., Any], *args: Any) -> Any:
    try:
        return np.asarray(function(*args)).tolist()
    except ValueError as error:
        assert NUMPYS in str(error)
        return "error"


@pytest.mark.parametrize("power", POWERS, ids=IDS)
@pytest.mark.parametrize("dtype", [np.int64, np.int16])
def test_a_negative_exponent_among_those_of_an_array(power, dtype):
    accelerated = tj.dlaccelerate(lambda x, k: power(x, k))
    x = np.arange(1, 4).astype(dtype)
    for k in (1, 2, 3, 0, -1, 2, -3):
        exponents = np.array([k, 1, 1], dtype)
        assert outcome(accelerated, x, exponents) == outcome(power, x, exponents)
    assert accelerated.stats.hits >= 3


@pytest.mark.parametrize("make", [int, lambda k: np.int64(k), lambda k: np.array([k]), lambda k: np.array(k)])
@pytest.mark.parametrize("way", [lambda p, x, k: p(x, k), handled], ids=["raised", "handled"])
def test_an_exponent_that_varies(make, way):
    for power in POWERS[:2]:
        accelerated = tj.dlaccelerate(lambda x, k, power=power: way(power, x, k))
        for k in (1, 2, 3, 4, -1, 0, -2, 5):
            x = np.arange(1, 4) + abs(k)
            plain = outcome(lambda x, k, power=power: way(power, x, k), x, make(k))
            assert outcome(accelerated, x, make(k)) == plain


def test_numbers_taken_from_an_array():
    def plain(x, k):
        return x ** int(k[0])

    accelerated = tj.dlaccelerate(plain)
    for k in (1, 2, 3, -1, 4):
        assert outcome(accelerated, np.arange(1, 4), np.array([k])) == outcome(
            plain, np.arange(1, 4), np.array([k])
        )


def test_a_first_call_that_raises_the_error():
    accelerated = tj.dlaccelerate(lambda x, k: handled(np.power, x, k))
    for k in (-1, -2, 1, 2, -3):
        plain = handled(np.power, np.arange(3), np.array([k]))
        assert np.array_equal(accelerated(np.arange(3), np.array([k])), plain)
    assert accelerated.occupancy == 2


def test_arrays_without_elements_and_exponents_without_signs_have_no_guard():
    accelerated = tj.dlaccelerate(lambda x, k: x**k)
    for k in (1, 1, -1):
        assert accelerated(np.ones(0, int), np.array([k])).shape == (0,)
    for k in (1, 1, 200):
        assert accelerated(np.ones(3, np.uint8), np.array([k, k, k], np.uint8)).tolist() == [1, 1, 1]
    assert accelerated.stats.hits == 2


def test_captured_exponents():
    class Held:
        def __init__(self):
            self.k = np.array([1, 2])

        def plain(self, x):
            self.k -= 1
            return x**self.k

        accelerated = tj.dlaccelerate(plain)

    one, other = Held(), Held()
    for _ in range(2):
        assert outcome(one.accelerated, np.array([2, 3])) == outcome(other.plain, np.array([2, 3]))


@pytest.mark.parametrize("exponents", [[1, 2, 3], [1, 2, -3], [-1, 2, 3]])
def test_mapped_functions(exponents):
    def mapped(x, k):
        return tj.dlmap(lambda k: x**k, over=0)(k)

    x, k = np.arange(1, 3), np.array(exponents)
    expected = "error" if min(exponents) < 0 else [(x**n).tolist() for n in exponents]
    assert outcome(mapped, x, k) == expected
    accelerated = tj.dlaccelerate(mapped)
    assert outcome(accelerated, x, abs(k)) != "error"
    assert outcome(accelerated, x, k) == expected


def test_loops_over_exponents():
    accelerated = tj.dlaccelerate(lambda x, k: each(np.power, x, k))
    for k in ([1] * 12, [2] * 12, [*[1] * 11, -1], [3] * 12):
        assert outcome(accelerated, np.arange(3), np.array(k)) == outcome(
            each, np.power, np.arange(3), np.array(k)
        )


COUNTED: dict[str, Callable[[int], Any]] = {
    "squares": lambda n: 3 * n**2 - 3 * n + 2,
    "other exponents": lambda n: (n**0, n**1, n**5, n**True),
    "of two": lambda n: (2**n, (-2) ** n, 1**n, 0 ** abs(n)),
    "of ten": lambda n: 10**n,
    "divided": lambda n: n**-2,
    "by NumPy": lambda n: np.power(n, 3) + np.int64(n) ** 2,
    "a truth": lambda n: (n > 0) ** 2 + n,
}


@pytest.mark.parametrize("name", COUNTED)
def test_a_counter(name: str) -> None:
    """n**2 of a counter needs no trace for each n."""
    accelerated = tj.dlaccelerate(lambda x, n: (x, COUNTED[name](n)), audit=False)
    for n in (1, 2, 3, 4, 5, 7, 11, 6, 2, 9):
        found, expected = accelerated(np.ones(1), n)[1], COUNTED[name](n)
        assert np.array_equal(found, expected) or found == pytest.approx(expected, rel=1e-15)
        assert type(found) is type(expected) or isinstance(expected, np.generic)
    assert accelerated.stats.hits >= 4


@pytest.mark.parametrize("power", [lambda n: n**3, lambda n: 3**n, lambda n: n**-1, lambda n: (-1) ** n])
def test_powers_that_do_not_fit_64_bits_and_powers_of_zero(power: Callable[[int], Any]) -> None:
    """What Python computes exactly, or refuses, is what the function gives."""
    accelerated = tj.dlaccelerate(lambda x, n: (x, power(n)), audit=False)
    for n in (1, 2, 3, 4, 40, 41, 42, 5, 0, -3, 3_000, 6):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", tj.RetraceWarning)
            found, expected = divided(lambda n: accelerated(np.ones(1), n)[1], n), divided(power, n)
        assert type(found) is type(expected)
        assert found == (pytest.approx(expected, rel=1e-15) if type(expected) is float else expected)


def divided(function: Callable[[int], Any], n: int) -> Any:
    try:
        return function(n)
    except ZeroDivisionError:
        return "error"


class Recursive:
    """A recursive least-squares filter, whose gain is computed of the number of measurements."""

    def __init__(self) -> None:
        self.n, self.x, self.gain = 0, np.zeros(2), np.zeros(2)

    def update(self, z: float) -> Any:
        self.n += 1
        n = self.n
        self.gain[0] = 3.0 * (3 * n**2 - 3 * n + 2) / (n * (n + 1) * (n + 2))
        self.gain[1] = 18.0 * (2 * n - 1) / (n * (n + 1))
        residual = z - self.x[0] - self.x[1]
        self.x[0] += self.gain[0] * residual + self.x[1]
        self.x[1] += self.gain[1] * residual
        return self.x.copy()


def test_a_filter_with_a_counter() -> None:
    mine, theirs = Recursive(), Recursive()
    accelerated = tj.dlaccelerate(mine.update)
    for k in range(16):
        np.testing.assert_allclose(accelerated(0.5 * k + k % 3), theirs.update(0.5 * k + k % 3), rtol=1e-12)
    assert (mine.n, accelerated.stats.uncompiled) == (16, 0) and accelerated.stats.hits >= 6
