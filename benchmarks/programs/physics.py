# SPDX-License-Identifier: BSD-3-Clause
"""Physics: bodies, heat, waves, a system of Runge and Kutta, and a flow by Fourier transforms."""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.programs.program import Words, gradients


def bodies(words: Words, state: Any, masses: Any) -> Any:
    """Return how far bodies are from each other after 50 steps of leapfrog."""
    xp = words.np

    def pull(x: Any) -> Any:
        apart = x[None, :, :] - x[:, None, :]
        return (masses[:, None] * apart / ((apart**2).sum(-1, keepdims=True) + 0.05) ** 1.5).sum(1)

    def step(state: Any) -> Any:
        x, v = state
        v = v + 0.005 * pull(x)
        x = x + 0.01 * v
        return x, v + 0.005 * pull(x)

    x, v = words.loop(step, state, 50)
    return (x**2).sum() + xp.sqrt((v**2).sum())


def bodies_data(rng: np.random.Generator) -> tuple[Any, ...]:
    return (rng.normal(size=(32, 3)), 0.1 * rng.normal(size=(32, 3))), rng.uniform(0.5, 1.5, 32)


def heat(words: Words, conductivity: Any, start: Any, wanted: Any) -> Any:
    """Return how far a plate is from wanted temperatures after 50 steps, by its conductivity at each point."""

    def step(u: Any) -> Any:
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]
        return words.added(u, (slice(1, -1), slice(1, -1)), 0.2 * conductivity * around)

    return ((words.loop(step, start, 50) - wanted) ** 2).sum()


def heat_data(rng: np.random.Generator) -> tuple[Any, ...]:
    return rng.uniform(0.5, 1, (126, 126)), rng.normal(size=(128, 128)), rng.normal(size=(128, 128))


def wave(words: Words, speeds: Any, start: Any, heard: Any) -> Any:
    """Return how far what is heard at one end of a string is from what was heard, by the speed at each point."""

    def step(state: Any, wanted: Any) -> Any:
        before, now = state
        curved = now[2:] - 2 * now[1:-1] + now[:-2]
        after = words.added(2 * now - before, slice(1, -1), 0.5 * speeds**2 * curved)
        return (now, after), (after[5] - wanted) ** 2

    return words.scan(step, (start, start), heard)[1].sum()


def wave_data(rng: np.random.Generator) -> tuple[Any, ...]:
    start = np.exp(-(((np.arange(1000) - 100) / 20) ** 2))
    return rng.uniform(0.8, 1, 998), start, 0.1 * rng.normal(size=200)


def runge_kutta_4(f: Callable[[Any], Any], y: Any, h: float) -> Any:
    """Return a state after a step."""
    a = f(y)
    b = f(y + h / 2 * a)
    c = f(y + h / 2 * b)
    return y + h / 6 * (a + 2 * b + 2 * c + f(y + h * c))


def lorenz(words: Words, params: Any, start: Any, wanted: Any) -> Any:
    """Return how far 100 trajectories of Lorenz's system are from wanted states after 100 steps."""

    def slope(y: Any) -> Any:
        a, b, c = y
        return words.np.stack([params[0] * (b - a), a * (params[1] - c) - b, a * b - params[2] * c])

    last = words.loop(lambda y: runge_kutta_4(slope, y, 0.01), start, 100)
    return ((last - wanted) ** 2).mean()


def lorenz_data(rng: np.random.Generator) -> tuple[Any, ...]:
    return np.array([10.0, 28.0, 8 / 3]), rng.normal(size=(3, 100)), rng.normal(size=(3, 100))


def flow(words: Words, start: Any, wave_x: Any, wave_y: Any, kept: Any) -> Any:
    """Return the squared vorticity of a flow in a square after 5 steps, by that at the start (Navier and Stokes)."""
    fft = words.np.fft
    squares = wave_x**2 + wave_y**2
    inverse = 1 / words.np.where(squares == 0, 1.0, squares)

    def slope(w: Any) -> Any:
        stream = w * inverse
        across, along = fft.irfft2(1j * wave_y * stream), fft.irfft2(-1j * wave_x * stream)
        moved = across * fft.irfft2(1j * wave_x * w) + along * fft.irfft2(1j * wave_y * w)
        return -kept * fft.rfft2(moved) - 1e-3 * squares * w

    last = words.loop(lambda w: runge_kutta_4(slope, w, 0.01), fft.rfft2(start), 5)
    return (fft.irfft2(last)[: start.shape[0] // 2] ** 2).sum()


def flow_data(rng: np.random.Generator) -> tuple[Any, ...]:
    size = 64
    x, y = np.fft.fftfreq(size, 1 / size)[:, None], np.fft.rfftfreq(size, 1 / size)
    return rng.normal(size=(size, size)), x, y, (abs(x) < size / 3) * (y < size / 3) * 1.0


PROGRAMS = (
    gradients("N-body", bodies, bodies_data, loops=True),
    gradients("heat", heat, heat_data, loops=True),
    gradients("wave", wave, wave_data, loops=True),
    gradients("Runge-Kutta", lorenz, lorenz_data, loops=True),
    gradients("spectral flow", flow, flow_data, loops=True),
)
