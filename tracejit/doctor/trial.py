# SPDX-License-Identifier: BSD-3-Clause
"""What is tried: a kernel is compiled, a step is recorded, compiled and replayed, threads work together."""

import ctypes
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from tracejit import config
from tracejit.accelerate.function import dlaccelerate
from tracejit.array import dlarray
from tracejit.codegen.nest import NAME, named
from tracejit.doctor.facts import Facts
from tracejit.functions.elementwise import tanh
from tracejit.functions.evaluate import dlfeval, dlgradient
from tracejit.kernels.executor.state import ROW_WORDS
from tracejit.traces.compare import first_difference
from tracejit.util import logs

TOLERANCE = 1e-4  # of what float32 gives, summed in another order
_REPLAYS, _UNCOMPILED = 200, 20
_ROUNDS = 500
_LAUNCHES = 50
_WORK = 100_000  # turns of a loop, which take 0.2 ms


@dataclass(frozen=True, slots=True)
class Compiling:
    """One small kernel, from nothing to a result; `error` says why that is impossible."""

    error: str | None
    numba_ms: float | None = None
    kernel_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """A small training step: what its stages took, and whether it gives what the plain function gives.

    kernels     that it launches
    kept        how many of them could be loaded again from a (temporary) cache folder
    difference  from what the plain function gives, in words
    """

    error: str | None
    record_ms: float | None = None
    build_ms: float | None = None
    compile_ms: float | None = None
    load_ms: float | None = None
    replay_us: float | None = None
    uncompiled_us: float | None = None
    kernels: int = 0
    kept: int = 0
    difference: str | None = None


@dataclass(frozen=True, slots=True)
class Threads:
    """The pool: how many threads, from a call to its end with nothing to do, and how much faster they are than one."""

    threads: int
    error: str | None = None
    round_trip_us: float | None = None
    speedup: float | None = None


@dataclass(frozen=True, slots=True)
class Trial:
    """All that was tried; what needs a compiler is None where there is none."""

    compiling: Compiling
    step: Step | None
    threads: Threads | None


def attempt(facts: Facts) -> Trial:
    """Try all of it in silence, with the settings in effect but for the cache: that is a temporary folder."""
    with logs.silent():
        return _attempt(facts)


def _attempt(facts: Facts) -> Trial:
    compiling = _guarded(Compiling, _compile)
    if compiling.error is not None:
        return Trial(compiling, None, None)
    wanted: int = facts.setting("threads")
    with (
        tempfile.TemporaryDirectory(prefix="tracejit-doctor-") as folder,
        _replaced(backend="cpu", cache="private", cache_dir=folder),
    ):
        step = _guarded(Step, _step)
        threads = _guarded(lambda error: Threads(wanted, error), lambda: _together(wanted))
    return Trial(compiling, step, threads)


def _guarded(failed: Callable[[str], Any], run: Callable[[], Any]) -> Any:
    try:
        return run()
    except Exception as error:  # whatever it is, it is what was to be found out
        cause = error.__cause__ or error
        return failed(f"{type(cause).__name__}: {(str(cause).strip() or 'no message').splitlines()[0]}")


@contextmanager
def _replaced(**values: Any) -> Iterator[None]:
    settings = config.settings
    before = {name: getattr(settings, name) for name in values}
    for name, value in values.items():
        setattr(settings, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(settings, name, value)


def _kernel(body: str) -> Any:
    return named(f"def {NAME}(args):\n{body}", "doctor")


def _compile() -> Compiling:
    """Compile, load and run a kernel; nothing of the process is changed by that but what is imported."""
    started = time.perf_counter_ns()
    from tracejit.compile import numba_target, objects  # imports Numba

    imported = time.perf_counter_ns()
    lowered = numba_target.lower(_kernel("    o = write_f64(args[0], 0)\n    o[0] = f64(1.5)\n"))
    code, needs = lowered.object_code()
    address = objects.load(lowered.symbol, code, needs)
    compiled = time.perf_counter_ns()
    out = np.zeros(1)
    arguments = np.array([out.ctypes.data], np.intp)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)(arguments.ctypes.data)
    if out[0] != 1.5:
        raise ArithmeticError(f"a kernel that stores 1.5 stored {out[0]}")
    return Compiling(None, _ms(imported - started), _ms(compiled - imported))


def _step() -> Step:
    """Train a small network by one step, again and again."""
    rng = np.random.default_rng(0)
    x = dlarray(rng.standard_normal((32, 16)).astype(np.float32))
    w = dlarray(rng.standard_normal((16, 8)).astype(np.float32))

    def train(w: dlarray, x: dlarray) -> Any:
        loss = (tanh(x @ w) ** 2).mean()
        return loss, w - 0.1 * dlgradient(loss, w)

    def plain() -> Any:
        return dlfeval(train, w, x)

    step = dlaccelerate(train, audit=False)
    expected = plain()
    for _ in range(3):
        result = step(w, x)
    stats = step.stats
    if not stats.hits:
        return Step(f"it was not replayed: {step.explain()}")
    replay, uncompiled = _median(lambda: step(w, x), _REPLAYS), _median(plain, _UNCOMPILED)
    kept, kernels, load_ns = _loaded_again(step)
    return Step(
        None, _ms(stats.record_ns / stats.traces), _ms(stats.build_ns), _ms(stats.compile_ns), _ms(load_ns),
        _us(replay), _us(uncompiled), kernels, kept, first_difference(result, expected, TOLERANCE),
    )  # fmt: skip


def _loaded_again(step: Any) -> tuple[int, int, int]:
    """Return how many kernels of a step another process would find on disk, of how many, and how long that takes."""
    from tracejit.compile.key import key_of
    from tracejit.compile.registry import Compiled
    from tracejit.store.kernels import store

    kernels = [kernel for replay in step._last_trace.replays() for kernel in replay.program.kernels]
    if step.stats.compiled < len(kernels):  # this process had some
        Compiled().prepare(kernels)
    cache = store()
    assert cache is not None
    keys = [key_of("kernel", kernel.text) for kernel in kernels]
    kept = sum(key is not None and cache.load(key) is not None for key in keys)
    return kept, len(kernels), Compiled().prepare(kernels).load_ns if kept == len(kernels) else 0


def _together(threads: int) -> Threads:
    """Let the threads of the pool do nothing, and then something, together."""
    from tracejit.compile.registry import compiled
    from tracejit.runtime.thread_pool import pool

    workers = pool()
    if workers is None:
        return Threads(1)
    nothing = _kernel("    o = write_f64(args[0], 0)\n    o[0] = f64(1.5)\n")
    work = _kernel(
        "    n = args[1]\n    o = write_f64(args[0], 0)\n    total = f64(0.0)\n    for i in range(0, n):\n"
        "        total = total * f64(0.999) + f64(i)\n    o[0] = total\n"
    )
    compiled.prepare([nothing, work])
    run = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(workers.run_parts)

    def in_parts(kernel: Any, parts: int) -> Callable[[], None]:
        out = np.zeros((parts, 8))  # each part has a cache line of its own
        arguments = np.array([[out[part].ctypes.data, _WORK] for part in range(parts)], np.intp)
        address = compiled.address(kernel)
        rows = np.array([[address, 2 * part, parts, 1] for part in range(parts)], np.intp)
        assert rows.shape[1] == ROW_WORDS

        def launch() -> None:
            run(workers.address, rows.ctypes.data, arguments.ctypes.data)
            assert out.size  # what addresses point to lives as long as this function

        return launch

    # Workers sleep at first; and who had to wait for one leaves the pool alone for a while (Note [pool]).
    _median(in_parts(work, threads), _LAUNCHES)
    together, alone = (_median(in_parts(work, parts), _LAUNCHES) for parts in (threads, 1))
    round_trip = _median(in_parts(nothing, threads), _ROUNDS)
    return Threads(threads, None, _us(round_trip), round(threads * alone / together, 2))


def _median(run: Callable[[], Any], repeats: int) -> float:
    """Return what a call takes, in nanoseconds, and the median of some."""
    times = []
    for _ in range(repeats):
        started = time.perf_counter_ns()
        run()
        times.append(time.perf_counter_ns() - started)
    return median(times)


def _ms(nanoseconds: float) -> float:
    return round(nanoseconds / 1e6, 1)


def _us(nanoseconds: float) -> float:
    return round(nanoseconds / 1e3, 1)
