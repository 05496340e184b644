# SPDX-License-Identifier: BSD-3-Clause
"""The trial: a small training step is recorded, compiled, replayed, and compared with the plain function."""

import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from tracejit import config
from tracejit.accelerate.function import dlaccelerate
from tracejit.array import dlarray
from tracejit.errors import CacheWarning
from tracejit.functions.elementwise import tanh
from tracejit.functions.evaluate import dlfeval, dlgradient
from tracejit.traces.compare import first_difference
from tracejit.util import logs

TOLERANCE = 1e-4  # float32, summed in a different order
_REPLAYS, _UNCOMPILED = 200, 20


@dataclass(frozen=True, slots=True)
class Trial:
    """The result of the trial.

    error       why the step failed, None if it did not; the other fields then say nothing
    difference  between the replayed result and that of the plain function, in words; None if they agree
    compiled    the number of kernels that were compiled
    compile_ms, replay_us, uncompiled_us    time for compiling, for a replay, and for a call of the plain function
    """

    error: str | None = None
    difference: str | None = None
    compiled: int = 0
    compile_ms: float = 0.0
    replay_us: float = 0.0
    uncompiled_us: float = 0.0


def attempt() -> Trial:
    """Run the trial without logging, with the settings in effect except back end and cache folder."""
    with (
        logs.silent(),
        warnings.catch_warnings(),
        tempfile.TemporaryDirectory(prefix="tracejit-doctor-") as folder,
        _replaced(backend="cpu", cache="private", cache_dir=folder),
    ):
        warnings.simplefilter("ignore", CacheWarning)  # a system that refuses any folder has its own finding
        try:
            return _train()
        except Exception as error:  # any failure is a result of the trial
            cause = error.__cause__ or error
            return Trial(f"{type(cause).__name__}: {(str(cause).strip() or 'no message').splitlines()[0]}")


def _train() -> Trial:
    """Record, replay, compare."""
    rng = np.random.default_rng(0)
    x = dlarray(rng.standard_normal((32, 16)).astype(np.float32))
    w = dlarray(rng.standard_normal((16, 8)).astype(np.float32))

    def step(w: dlarray, x: dlarray) -> Any:
        loss = (tanh(x @ w) ** 2).mean()
        return loss, w - 0.1 * dlgradient(loss, w)

    accelerated = dlaccelerate(step, audit=False)
    expected = dlfeval(step, w, x)
    for _ in range(3):
        result = accelerated(w, x)
    stats = accelerated.stats
    if not stats.hits:
        return Trial(f"it is not replayed: {accelerated.explain()}")
    return Trial(
        difference=first_difference(result, expected, TOLERANCE),
        compiled=stats.compiled,
        compile_ms=round(stats.compile_ns / 1e6, 1),
        replay_us=_median_us(lambda: accelerated(w, x), _REPLAYS),
        uncompiled_us=_median_us(lambda: dlfeval(step, w, x), _UNCOMPILED),
    )


def _median_us(call: Callable[[], Any], repeats: int) -> float:
    """Return the median time of a call, in microseconds."""
    times = []
    for _ in range(repeats):
        started = time.perf_counter_ns()
        call()
        times.append(time.perf_counter_ns() - started)
    return round(median(times) / 1e3, 1)


@contextmanager
def _replaced(**values: Any) -> Iterator[None]:
    """Set settings within the block."""
    before = {name: getattr(config.settings, name) for name in values}
    for name, value in values.items():
        setattr(config.settings, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(config.settings, name, value)
