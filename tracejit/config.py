# SPDX-License-Identifier: BSD-3-Clause
"""Settings from the environment, read once at import; an unknown value is an error that lists the valid ones."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from tracejit.errors import ArgumentError

BACKENDS = ("cpu", "python")


@dataclass(slots=True)
class Settings:
    """What can be set.

    backend     TRACEJIT_BACKEND: "cpu" (Numba), or "python" (emitted source without compiling; slow)
    verify      TRACEJIT_VERIFY: "1" checks every graph before and after each pass
    flush_denormals     TRACEJIT_FLUSH_DENORMALS: "0" keeps denormal numbers in compiled programs, which makes
                steps slow whose gradients become that small
    """

    backend: str = "cpu"
    verify: bool = False
    flush_denormals: bool = True


def from_environment(environment: Mapping[str, str]) -> Settings:
    """Return the settings in `environment`.

    Raises:
        ArgumentError: if a variable has a value that is not valid.
    """
    return Settings(
        backend=_choice(environment, "TRACEJIT_BACKEND", BACKENDS, "cpu"),
        verify=_choice(environment, "TRACEJIT_VERIFY", ("0", "1"), "0") == "1",
        flush_denormals=_choice(environment, "TRACEJIT_FLUSH_DENORMALS", ("0", "1"), "1") == "1",
    )


def _choice(environment: Mapping[str, str], name: str, valid: tuple[str, ...], default: str) -> str:
    value = environment.get(name, default)
    if value not in valid:
        raise ArgumentError(f"{name}={value!r} is not valid; use one of {', '.join(map(repr, valid))}.")
    return value


settings = from_environment(os.environ)
