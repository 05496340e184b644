# SPDX-License-Identifier: BSD-3-Clause
"""Settings from the environment, read once at import; an unknown value is an error that lists the valid ones."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from tracejit.errors import ArgumentError

BACKENDS = ("cpu", "python")


def _cpus() -> int:
    """Return how many CPUs the process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(slots=True)
class Settings:
    """What can be set.

    backend     TRACEJIT_BACKEND: "cpu" (Numba), or "python" (emitted source without compiling; slow)
    verify      TRACEJIT_VERIFY: "1" checks every graph before and after each pass
    flush_denormals     TRACEJIT_FLUSH_DENORMALS: "0" keeps denormal numbers in compiled programs, which makes
                steps slow whose gradients become that small
    threads     TRACEJIT_THREADS: how many threads run a program; OMP_NUM_THREADS if that is set, or else one for each
                CPU that the process may use
    """

    backend: str = "cpu"
    verify: bool = False
    flush_denormals: bool = True
    threads: int = field(default_factory=_cpus)


def from_environment(environment: Mapping[str, str]) -> Settings:
    """Return the settings in `environment`.

    Raises:
        ArgumentError: if a variable has a value that is not valid.
    """
    return Settings(
        backend=_choice(environment, "TRACEJIT_BACKEND", BACKENDS, "cpu"),
        verify=_choice(environment, "TRACEJIT_VERIFY", ("0", "1"), "0") == "1",
        flush_denormals=_choice(environment, "TRACEJIT_FLUSH_DENORMALS", ("0", "1"), "1") == "1",
        threads=_threads(environment),
    )


def _threads(environment: Mapping[str, str]) -> int:
    value = environment.get("TRACEJIT_THREADS")
    if value is not None:
        if not value.isdecimal() or int(value) < 1:
            raise ArgumentError(f"TRACEJIT_THREADS={value!r} is not valid; use a number from 1 on.")
        return int(value)
    # Other libraries' variable may hold what they understand, such as a list for nested regions.
    value = environment.get("OMP_NUM_THREADS", "")
    if value.isdecimal() and int(value) >= 1:
        return int(value)
    return _cpus()


def _choice(environment: Mapping[str, str], name: str, valid: tuple[str, ...], default: str) -> str:
    value = environment.get(name, default)
    if value not in valid:
        raise ArgumentError(f"{name}={value!r} is not valid; use one of {', '.join(map(repr, valid))}.")
    return value


settings = from_environment(os.environ)
