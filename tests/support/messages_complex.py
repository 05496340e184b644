# SPDX-License-Identifier: BSD-3-Clause
"""Rows of the table of messages (messages.py) of complex numbers: a call, the error, its text."""

from collections.abc import Callable

import numpy as np

import tracejit as tj
from tracejit.array import apply
from tracejit.errors import (
    ArgumentError,
    ArgumentValueError,
    DimsError,
    DTypeError,
    GradientError,
    WriteError,
)

Z = tj.dlarray(np.array([1.0 + 2.0j, 3.0 - 1.0j]))

ROWS: tuple[tuple[Callable[[], object], type[Exception], str], ...] = (
    (
        lambda: tj.sigmoid(Z),
        DTypeError,
        "sigmoid: not defined for complex128; compute with x.real and x.imag, or with abs(x).",
    ),
    (
        lambda: tj.gelu(Z),
        DTypeError,
        "gelu: not defined for complex128; pass a real array, such as abs(x), x.real or x.imag.",
    ),
    (
        lambda: np.i0(Z),
        DTypeError,
        "cast: complex128 numbers would lose their imaginary parts as float64, in a function of real numbers; pass "
        "x.real, x.imag or abs(x).",
    ),
    (
        lambda: apply("real", 1.0),
        DTypeError,
        "real: x is float64, expected complex numbers; real ones have no parts to see apart.",
    ),
    (
        lambda: tj.dlfeval(lambda z: tj.dlgradient((z * z).sum(), z), Z),
        GradientError,
        "dlgradient: y is scalar dlarray complex128, expected a real scalar, because no direction lowers a complex "
        "number; take a real function of it, such as abs(y) or y.real.",
    ),
    (
        lambda: tj.dlfeval(lambda z: tj.dljacobian(abs(z), z, 0), Z),
        GradientError,
        "dljacobian: x is 2 dlarray complex128, expected real numbers; only dlgradient, dljvp and vjp take complex "
        "ones. Pass their real and imaginary parts.",
    ),
    (
        lambda: tj.randi(5, 3, dtype=complex),
        DTypeError,
        "randi: the numbers are integers, so that the dtype cannot be complex128; choose another dtype.",
    ),
    (
        lambda: np.isposinf(Z),
        ArgumentError,
        "np.isposinf: complex numbers have no sign; pass x.real or x.imag.",
    ),
    (
        lambda: tj.dlarray([1.5]).astype(int, casting="safe"),
        DTypeError,
        "astype: float64 numbers cannot be cast to int64 with casting='safe'; leave casting= out, or pass \"unsafe\".",
    ),
    (
        lambda: setattr(tj.dlarray([1.0]), "imag", 2.0),
        WriteError,
        "imag: an array of real numbers has no imaginary parts to write; cast it (x.astype(complex)).",
    ),
    (
        lambda: np.fft.fft(Z, 0),
        ArgumentValueError,
        "np.fft.fft: n must be positive, not 0.",
    ),
    (
        lambda: np.fft.fft(Z, norm="other"),
        ArgumentValueError,
        "np.fft.fft: norm must be 'backward', 'ortho' or 'forward', not 'other'.",
    ),
    (
        lambda: np.fft.ifft(tj.dlarray(1.0)),
        ArgumentError,
        "np.fft.ifft: a has no axis to transform; pass an array with one.",
    ),
    (
        lambda: np.fft.rfft(Z),
        ArgumentError,
        "np.fft.rfft: a is complex128, expected real numbers; use np.fft.fft, or pass a.real.",
    ),
    (
        lambda: np.fft.irfft(Z, 0),
        ArgumentValueError,
        "np.fft.irfft: n must be positive, not 0.",
    ),
    (
        lambda: np.fft.fftn(Z, s=(2, 2), axes=(0,)),
        ArgumentValueError,
        "np.fft.fftn: s and axes have 2 and 1 elements, expected one size for each axis.",
    ),
    (
        lambda: np.fft.rfftn(Z.real, axes=()),
        ArgumentError,
        "np.fft.rfftn: there is no axis to transform; pass one or more.",
    ),
    (
        lambda: np.fft.irfftn(Z, axes=()),
        ArgumentError,
        "np.fft.irfftn: there is no axis to transform; pass one or more.",
    ),
    (
        lambda: apply("fft", tj.dlarray(1.0), axis=0, inverse=False),
        DimsError,
        "fft: axis 0 of x of scalar has no elements to transform; pass an axis that has some, or n.",
    ),
    (
        lambda: apply("rfft", Z, axis=0),
        DTypeError,
        "rfft: not defined for complex128; compute with x.real and x.imag, or with abs(x).",
    ),
    (
        lambda: apply("irfft", Z, axis=0, n=5),
        DimsError,
        "irfft: axis 0 of x of 2 has 2 elements, expected 3 for n=5; cut or pad it first.",
    ),
    (
        lambda: np.quantile(Z, 0.5),
        ArgumentError,
        "np.quantile: a is complex128, expected real numbers; pass a.real, a.imag or abs(a).",
    ),
)
