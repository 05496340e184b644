# SPDX-License-Identifier: BSD-3-Clause
"""Profiles and rates of a device.

A graph of its own runs all launches one after the other, with an event between each two (runtime/cuda/timeline.py), on
separate memory and synthetic inputs. So each launch finds the cache as the one before left it, and none runs beside
another, unlike in a replay. Launches in a loop are measured in its first step, and count with that time in each step.
Of a loop that a value ends, one step counts.
"""

import time
from contextlib import suppress
from functools import cache

from tracejit.describe.profile import Profile
from tracejit.describe.roofline import Rates
from tracejit.errors import DeviceMemoryError
from tracejit.record.guards import GuardFailed
from tracejit.runtime.cuda.arrays import DeviceMemory
from tracejit.runtime.cuda.driver import Driver
from tracejit.runtime.cuda.executable import DeviceExecutable
from tracejit.runtime.cuda.timeline import Timeline

_LEAST, _MOST = 3, 200  # replays
_REPLAYS = 20  # as they follow each other in a program of the user
_LIMIT_NS = 300_000_000  # no replay starts later
_COPIES = tuple(1 << exponent for exponent in (16, 20, 24, 28))  # bytes that are read and written
_COPIED = 10  # times
_CLOCK_KHZ, _MULTIPROCESSORS, _SINGLE_TO_DOUBLE = 13, 16, 87  # attributes of a device
_LANES = {(7, 5): 64, (8, 0): 64}  # float32 numbers that a multiprocessor computes at once; 128 of others


def profile(executable: DeviceExecutable) -> Profile:
    """Measure the launches of a program on the device that it was compiled for."""
    program = executable.program
    on, inputs = executable.on, executable.synthetic_inputs()
    timeline = Timeline(on, executable.in_turn(inputs))
    timeline.run()  # touches the memory and the kernels for the first time
    launch_ns = [float("inf")] * len(program.rows)
    ends = time.perf_counter_ns() + _LIMIT_NS
    replays = 0
    while replays < _LEAST or (replays < _MOST and time.perf_counter_ns() < ends):
        times = timeline.run()
        launch_ns = list(map(min, launch_ns, times))
        replays += 1
    launch_ns = [ns * times for ns, times in zip(launch_ns, program.repeats, strict=True)]

    def replay() -> None:
        with suppress(GuardFailed):
            executable(inputs)

    return Profile(launch_ns, 1e6 * min([on.time_ms(replay, _REPLAYS) for _ in range(_LEAST)]), replays)


@cache
def rates(on: Driver) -> Rates:
    """Return the rates of a device: copies as measured, arithmetic as its clock and its multiprocessors allow."""
    lanes = _LANES.get((on.capability.major, on.capability.minor), 128)
    per_s = 2e3 * lanes * on.attribute(_CLOCK_KHZ) * on.attribute(_MULTIPROCESSORS)
    flops = {"float32": per_s, "float64": per_s / max(1, on.attribute(_SINGLE_TO_DOUBLE))}
    copies = []
    for size in _COPIES:
        try:
            memory = DeviceMemory(on, size)
        except DeviceMemoryError:
            break
        copies.append((size, _copy_rate(on, memory.address, size)))
    return Rates(flops, tuple(copies))


def _copy_rate(on: Driver, start: int, size: int) -> float:
    """Return the bytes per second of a copy within memory; one half of them is read, the other half written."""
    half = size // 2
    ms = min([on.time_ms(lambda: on.copy(start + half, start, half), _COPIED) for _ in range(2)])
    return 1e3 * size / max(ms, 1e-6)
