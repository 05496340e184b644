# SPDX-License-Identifier: BSD-3-Clause
"""Random loops of complex numbers, kept as loops, with the results and derivatives of the loop in Python."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np

import tracejit as tj


def turned(z: Any, w: Any, x: Any) -> Any:
    return np.tanh(z @ w) * 0.5 + x


def transformed(z: Any, w: Any, x: Any) -> Any:
    return np.fft.ifft(np.fft.fft(z, axis=1) * w[0], axis=1) + x


def of_real_numbers(z: Any, w: Any, x: Any) -> Any:
    return np.fft.irfft(np.fft.rfft(z.real) * x[0, :2], 3) + 1j * z.imag


def by_size(z: Any, w: Any, x: Any) -> Any:
    return z * np.exp(-np.abs(z)) + np.conj(z) * x.real


def by_angle(z: Any, w: Any, x: Any) -> Any:
    return np.where(z.real > 0, np.sin(z), z * (0.3 - 0.2j)) + w[1]


def gathered(z: Any, w: Any, x: Any) -> Any:
    return np.concatenate([z[:, 1:], z[:, :1] * x[:, :1]], axis=1) / (2 + 1j)


def product(z: Any, w: Any, x: Any) -> Any:
    return z + (x @ w) * np.prod(z, axis=1, keepdims=True)


LINES = (turned, transformed, of_real_numbers, by_size, by_angle, gathered, product)


def loop(seed: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return a real loss with a loop in it, and its operands: weights, the first carry, and xs."""
    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    lines = rng.sample(LINES, rng.randint(1, 3))
    length, reverse, kind = (
        rng.choice([3, 5]),
        rng.random() < 0.3,
        rng.choice(["scan", "checkpoint", "while", "cond"]),
    )
    carries_real = rng.random() < 0.5

    def draw(*shape: int) -> Any:
        return tj.dlarray(0.5 * (numbers.normal(size=shape) + 1j * numbers.normal(size=shape)))

    def chain(z: Any, w: Any, x: Any) -> Any:
        for line in lines:
            z = line(z, w, x)
        return z

    def step(carry: Any, x: Any, w: Any) -> Any:
        if not carries_real:
            z = chain(carry, w, x)
            return z, (z[0], abs(z).sum())
        z, size = carry
        z = chain(z * size, w, x)
        size = 1 / (1 + np.mean(abs(z) ** 2))
        return (z, size), (z[0], size)

    def loss(w: Any, first: Any, xs: Any) -> Any:
        start = (first, tj.dlarray(np.array(0.9))) if carries_real else first
        if kind == "while":
            taken = lambda state: step(state[1], xs[0], w)[0]
            count, last = tj.dlwhile(lambda state: state[0] < 4, lambda state: (state[0] + 1, taken(state)),
                                     (tj.dlarray(np.array(0)), start), max_steps=6)  # fmt: skip
            results: Any = (xs[0], count * 1.0)
        elif kind == "cond":
            last = tj.dlcond(w.real.sum() > 0, lambda start: step(start, xs[0], w)[0],
                             lambda start: step(start, xs[1], w.T)[0], start)  # fmt: skip
            results = (xs[0], tj.dlarray(np.array(1.0)))
        else:
            fun = lambda carry, x: step(carry, x, w)
            last, results = tj.dlscan(
                tj.dlcheckpoint(fun) if kind == "checkpoint" else fun, start, xs, reverse=reverse
            )
        last = last[0] * last[1] if carries_real else last
        weights = np.arange(1.0, results[0].size + 1).reshape(results[0].shape)
        return (abs(last) ** 2).sum() + (results[0] * weights).imag.sum() + (results[1] ** 2).sum()

    return loss, (draw(3, 3), draw(2, 3), draw(length, 2, 3))


def first(loss: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of the operands that gives the loss and its gradients by all of them."""

    def fun(*operands: Any) -> Any:
        value = loss(*operands)
        return value, tj.dlgradient(value, operands)

    return fun


def second(loss: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of the operands that differentiates a function of the gradients again."""

    def fun(*operands: Any) -> Any:
        gradients = tj.dlgradient(loss(*operands), operands)
        total = sum((abs(gradient) ** 2).sum() for gradient in gradients)
        return total, tj.dlgradient(total, operands)

    return fun


def forward(loss: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of the operands that gives the derivative of the loss along them."""
    return lambda *operands: tj.jvp(loss, operands, operands)


def check(seed: int, derivative: Callable[..., Any]) -> tj.AcceleratedFunction:
    """Check that three accelerated calls give what the loop in Python does; return the accelerated function."""
    loss, operands = loop(seed)
    fun = derivative(loss)
    accelerated = tj.dlaccelerate(fun)
    expected = tj.dlfeval(fun, *operands)
    for _ in range(3):
        found = accelerated(*operands)
        for one, other in zip(*(tj.tree.flatten(each)[0] for each in (found, expected)), strict=True):
            assert one.dtype == other.dtype
            scale = max(1.0, float(np.abs(np.asarray(other)).max(initial=0.0)))
            np.testing.assert_allclose(
                np.asarray(one) / scale, np.asarray(other) / scale, rtol=1e-9, atol=1e-11
            )
    return accelerated
