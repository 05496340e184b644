# SPDX-License-Identifier: BSD-3-Clause
"""tj.signal and tj.stft against scipy.signal: values, dtypes, labels, replays, derivatives."""

from itertools import product
from typing import Any

import numpy as np
import pytest
import scipy.signal
from accelerated import dlaccelerate
from effort import by_turns

import tracejit as tj
from tracejit.signal.convolutions import _fast

RNG = np.random.default_rng(7)
MODES = ("full", "same", "valid")
SIZES = [
    ((7,), (3,)), ((3,), (7,)), ((40,), (17,)), ((5,), (1,)), ((1,), (1,)), ((), ()), ((6, 5), (3, 2)),
    ((9, 8), (5, 6)), ((4, 3), (2, 5)), ((4, 5, 3), (2, 3, 3)), ((3, 4, 2, 3), (2, 3, 2, 2)),
    ((60,), (4,)), ((1, 30), (6, 3)),
]  # fmt: skip
DTYPES = ["float64", "float32", "complex128", "complex64", "int64", "int8", "bool"]


def numbers(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    x = RNG.normal(size=shape) * 3
    return np.asarray(x + 1j * RNG.normal(size=shape) if dtype.startswith("complex") else x).astype(dtype)


def fits(mode: str, n: tuple[int, ...], m: tuple[int, ...]) -> bool:
    larger = [a >= b for a, b in zip(n, m, strict=True)], [a <= b for a, b in zip(n, m, strict=True)]
    return mode != "valid" or any(map(all, larger))


def check(have: Any, want: Any) -> None:
    want = np.asarray(want)
    narrow = want.dtype in (np.float32, np.complex64)
    assert have.dtype == want.dtype
    scale = np.abs(want).max(initial=1).astype(float)
    np.testing.assert_allclose(
        tj.extractdata(have), want, rtol=0, atol=(2e-6 if narrow else 1e-13) * 10 * scale
    )


def replayed(fun: Any, *args: Any) -> Any:
    """Return the result of a replay, after that of the first call."""
    step = dlaccelerate(fun)
    for _ in range(2):
        result = step(*args)
    assert step.stats.hits == 1
    return result


def mode_of_replays(sizes: Any, dtype: str) -> str:
    """Return the mode whose replays are checked: each in turn of every size, and of every dtype."""
    return MODES[(len(sizes[0]) + sum(sizes[0]) + DTYPES.index(dtype)) % len(MODES)]


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_convolutions(sizes: Any, dtype: str) -> None:
    x, v = numbers(sizes[0], dtype), numbers(sizes[1], dtype)
    for mode, name in product(MODES, ("convolve", "correlate")):
        if not fits(mode, *sizes):
            continue
        wide = np.int64 if dtype == "bool" else x.dtype  # SciPy refuses some bools
        want = getattr(scipy.signal, name)(x.astype(wide), v.astype(wide), mode, method="direct").astype(
            dtype
        )
        ours = getattr(tj.signal, name)
        methods = ("auto", "direct") if dtype in ("int8", "bool") else ("auto", "direct", "fft")
        for method in methods:
            check(ours(x, v, mode, method), want)
        if mode == mode_of_replays(sizes, dtype):
            check(replayed(lambda x, v: ours(x, v, mode), x, v), want)  # noqa: B023


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize(
    ("sizes", "dtype", "name"),
    by_turns(
        [*SIZES, ((500,), (7,)), ((40, 4), (3, 30)), ((7,), (300,))],
        ["float64", "float32", "complex128", "int64"],
        ["fftconvolve", "oaconvolve"],
    ),
    ids=str,
)
def test_convolutions_by_transforms(sizes: Any, dtype: str, name: str) -> None:
    x, v = numbers(sizes[0], dtype), numbers(sizes[1], dtype)
    for mode in MODES:
        if fits(mode, *sizes):
            want = getattr(scipy.signal, name)(x, v, mode)
            want = want.astype(float) if dtype == "int64" else want  # SciPy leaves integers where sizes are 1
            check(getattr(tj.signal, name)(x, v, mode), want)
            if mode == mode_of_replays(sizes, dtype):
                check(replayed(lambda x, v: getattr(tj.signal, name)(x, v, mode), x, v), want)  # noqa: B023


@pytest.mark.parametrize("name", ["fftconvolve", "oaconvolve"])
@pytest.mark.parametrize("axes", [0, (0, 2), [-3], (1, 0, 2), None], ids=str)
def test_some_axes(name: str, axes: Any) -> None:
    x, v = numbers((40, 3, 5), "float64"), numbers((4, 1, 5), "float64")
    turned = numbers((7, 1, 1), "complex128")
    for a, b, modes in ((x, v, MODES), (v, x, ("full", "valid")), (x, turned, MODES), (turned, x, ("full",))):
        for mode in modes:
            want = getattr(scipy.signal, name)(a, b, mode, axes=axes)
            check(getattr(tj.signal, name)(a, b, mode, axes=axes), want)


def test_labels_and_mixed_dtypes() -> None:
    x = tj.dlarray(numbers((2, 3, 20), "float32"), "CBT")
    found = tj.signal.fftconvolve(x, np.ones((1, 1, 3)), "same", axes="T")
    assert found.format == "CBT" and found.dtype == np.float64
    assert tj.signal.convolve(x, np.ones((1, 1, 3), np.float32)).format == "CBT"
    check(tj.signal.convolve([1, 2], [0.5]), np.array([0.5, 1.0]))
    check(tj.signal.correlate([1j, 2], [0, 1j]), scipy.signal.correlate([1j, 2], [0, 1j]))


def test_integers_are_exact() -> None:
    x, v = RNG.integers(-(2**40), 2**40, 50), RNG.integers(-(2**20), 2**20, 30)
    np.testing.assert_array_equal(tj.extractdata(tj.signal.convolve(x, v)), np.convolve(x, v))
    small = RNG.integers(-99, 99, (2, 40))
    np.testing.assert_array_equal(
        tj.extractdata(tj.signal.convolve(*small, method="fft")), np.convolve(*small)
    )


@pytest.mark.parametrize("name", ["convolve", "correlate", "fftconvolve", "oaconvolve"])
def test_no_elements(name: str) -> None:
    ours = getattr(tj.signal, name)
    assert ours(np.zeros(0), np.ones(3)).shape == (0,)
    assert ours(np.ones(3), np.zeros(0), "same").size == 0
    if "oa" in name or "fft" in name:
        assert ours(np.zeros((0, 5)), np.ones((1, 3)), axes=1).shape == (0, 7)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize(
    "sizes", [((9,), (4,)), ((30,), (18,)), ((6, 5), (3, 7)), ((5, 6, 3), (3, 4, 2))], ids=str
)
def test_derivatives(sizes: Any, dtype: str) -> None:
    x, v = numbers(sizes[0], "float64"), numbers(sizes[1], "float64")
    turn = 1 + 0.5j if dtype.startswith("complex") else 1.0
    for name, method in (
        ("convolve", "direct"),
        ("correlate", "fft"),
        ("correlate", "direct"),
        ("oaconvolve", None),
    ):
        for mode in MODES:
            if fits(mode, *sizes):
                options = {} if method is None else {"method": method}

                def loss(x: Any, v: Any, name=name, mode=mode, options=options) -> Any:
                    y = getattr(tj.signal, name)(x * turn, v * (2 - turn) + v * v, mode, **options)
                    return (y * np.conj(y)).real.sum()

                tj.testing.check_gradients(loss, x, v, order=2)


def test_lengths_of_transforms() -> None:
    for n in range(1, 3000):
        assert _fast(n) == scipy.fft.next_fast_len(n, real=True)


WAVES = numbers((3, 50), "float64")


def scipys(x: np.ndarray, window: np.ndarray, overlap: int, length: int) -> np.ndarray:
    """Return SciPy's transform of segments, without borders, and without the factor that it divides by."""
    sides = np.iscomplexobj(x)
    found = scipy.signal.stft(
        x, window=window, nperseg=len(window), noverlap=overlap, nfft=length, boundary=None, padded=False,
        return_onesided=not sides,
    )[2]  # fmt: skip
    return found * float(window.sum())


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "complex64"])
@pytest.mark.parametrize(
    ("window", "overlap", "length"), [(8, 6, 8), (8, 0, 8), (7, 3, 12), (50, 49, 50), (1, 0, 1), (5, 4, 9)]
)
def test_segments(window: int, overlap: int, length: int, dtype: str) -> None:
    x = numbers((3, 50), dtype)
    weights = scipy.signal.get_window("hann", window) if window > 1 else np.ones(1)
    given: Any = window if window > 1 else weights
    want = scipys(x, weights, overlap, length)
    options = {"overlap_length": overlap, "fft_length": length}
    check(tj.stft(x, given, **options), want)
    check(replayed(lambda x, w: tj.stft(x, w, **options), x, weights), want)
    y = tj.stft(x, given, **options)
    back = tj.istft(y, given, **options, one_sided=not np.iscomplexobj(x))
    sums = np.zeros(back.shape[-1])
    for k in range(y.shape[-1]):
        sums[k * (window - overlap) :][:window] += weights**2
    known = sums > 1e-8
    near = 1e-3 if "32" in dtype or "64" in dtype[7:] else 1e-6
    np.testing.assert_allclose(
        tj.extractdata(back)[:, known], x[:, : back.shape[-1]][:, known], rtol=near, atol=near
    )
    assert back.dtype == dtype


def test_the_inverse_is_that_of_scipy() -> None:
    y = numbers((2, 5, 7), "complex128")  # the transform of no signal
    weights = scipy.signal.get_window("hann", 8)
    with pytest.warns(UserWarning, match="NOLA"):  # the first step is not known
        want = scipy.signal.istft(y / weights.sum(), window=weights, nperseg=8, noverlap=6, boundary=False)[1]
    check(tj.istft(y, 8, overlap_length=6), want)
    check(tj.istft(np.moveaxis(y, 0, 2), 8, axis=1), np.moveaxis(want, 0, 1))


def test_segments_of_16_bits() -> None:
    x = RNG.normal(size=40).astype(np.float16)
    have, want = tj.stft(x, 8), tj.stft(x.astype(np.float32), 8)
    np.testing.assert_array_equal(tj.extractdata(have), tj.extractdata(want))
    assert have.dtype == np.complex64 and tj.istft(have, 8).dtype == np.float32


def test_segments_of_labelled_signals() -> None:
    x = tj.dlarray(WAVES[:, None], "CBT")
    y = tj.stft(x, 8)
    assert (y.format, y.shape) == ("CBST", (3, 1, 5, 22))
    back = tj.istft(y, 8)
    assert (back.format, back.shape) == ("CBT", (3, 1, 50))
    assert tj.stft(WAVES.T, 8, data_format="TC").shape == (5, 22, 3)
    assert tj.stft(WAVES.T, 8, data_format="TC").format is None
    np.testing.assert_array_equal(tj.stft(WAVES.T, 8, axis=0), np.moveaxis(tj.stft(WAVES, 8), 0, 2))
    assert tj.stft(np.zeros((0, 9), np.int64), 8).shape == (0, 5, 1)
    assert tj.istft(tj.stft(np.zeros((0, 9)), 8), 8).shape == (0, 8)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_derivatives_of_segments(dtype: str) -> None:
    turn = 1j if dtype == "complex128" else 1.0
    target = numbers((4, 8) if dtype == "complex128" else (3, 8), "complex128")

    def loss(x: Any, w: Any) -> Any:
        y = tj.stft(turn * x, w, overlap_length=2)
        signal = tj.istft(y * np.abs(y) + target, w, overlap_length=2, one_sided=dtype == "float64")
        return (np.abs(signal) ** 2).sum() + (np.abs(y - target) ** 2).sum()

    tj.testing.check_gradients(loss, numbers((18,), "float64"), np.array([0.5, 1.0, 0.8, 0.3]))
