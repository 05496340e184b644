# SPDX-License-Identifier: BSD-3-Clause
"""Settings from the environment, read once at import; an unknown value is an error that lists the valid ones."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

from tracejit.errors import ArgumentError

BACKENDS = ("cpu", "python")
CACHES = ("private", "shared", "off")
PRECISIONS = ("default", "highest")
LOGS = ("off", "warning", "info", "debug")


def cpus() -> int:
    """Return how many CPUs the process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(slots=True)
class Settings:
    """The settings, each with its environment variable.

    backend     TRACEJIT_BACKEND: "cpu" (Numba), or "python" (emitted source without compiling; slow)
    verify      TRACEJIT_VERIFY: "1" checks every graph before and after each pass
    flush_denormals     TRACEJIT_FLUSH_DENORMALS: "0" keeps denormal numbers in compiled programs; steps whose
                gradients become that small are then slow
    write_arguments     TRACEJIT_WRITE_ARGUMENTS: "0" keeps arrays and containers as they are that are passed to
                dlfeval and to accelerated functions (whose option write_arguments has this default), as in MATLAB
    precision   TRACEJIT_PRECISION: "highest" computes convolutions of float32 as direct sums, "default" also by
                Winograd's method; accelerated functions, whose option precision has this default
    threads     TRACEJIT_THREADS: how many threads run a program, up to 32; by default OMP_NUM_THREADS, or one for each
                CPU that the process may use
    cache       TRACEJIT_CACHE: "private", "shared" with a group of users that trust each other, or "off"
    cache_dir   TRACEJIT_CACHE_DIR: the folder of the cache on disk; by default the system's cache folder
    cache_mib   TRACEJIT_CACHE_MIB: the limit of the cache on disk, in MiB; the entries unused for longest are evicted
    cublas_from TRACEJIT_CUBLAS_FROM: products of matrices on a GPU of at least this many multiplications are computed
                by NVIDIA's library cuBLASLt; by default none
    log         TRACEJIT_LOG: "warning", "info" or "debug" prints log records of this level and above to standard
                error; "off" prints none
    """

    backend: str = "cpu"
    verify: bool = False
    flush_denormals: bool = True
    threads: int = field(default_factory=cpus)
    cache: str = "private"
    cache_dir: str | None = None
    cache_mib: int = 1024
    cublas_from: int | None = None
    log: str = "off"
    write_arguments: bool = True
    precision: str = "default"


def from_environment(environment: Mapping[str, str]) -> Settings:
    """Return the settings in `environment`.

    Raises:
        ArgumentError: if a variable has a value that is not valid.
    """
    return Settings(
        backend=_choice(environment, "TRACEJIT_BACKEND", BACKENDS, "cpu"),
        verify=_choice(environment, "TRACEJIT_VERIFY", ("0", "1"), "0") == "1",
        flush_denormals=_choice(environment, "TRACEJIT_FLUSH_DENORMALS", ("0", "1"), "1") == "1",
        precision=_choice(environment, "TRACEJIT_PRECISION", PRECISIONS, "default"),
        write_arguments=_choice(environment, "TRACEJIT_WRITE_ARGUMENTS", ("0", "1"), "1") == "1",
        threads=_threads(environment),
        cache=_choice(environment, "TRACEJIT_CACHE", CACHES, "private"),
        cache_dir=_folder(environment, "TRACEJIT_CACHE_DIR"),
        cache_mib=_number(environment, "TRACEJIT_CACHE_MIB") or 1024,
        cublas_from=_number(environment, "TRACEJIT_CUBLAS_FROM"),
        log=_choice(environment, "TRACEJIT_LOG", LOGS, "off"),
    )


def _number(environment: Mapping[str, str], name: str) -> int | None:
    value = environment.get(name)
    if value is None:
        return None
    if not value.isdecimal() or int(value) < 1:
        raise ArgumentError(f"{name}={value!r} is not valid; use an integer of at least 1.")
    return int(value)


def _folder(environment: Mapping[str, str], name: str) -> str | None:
    value = environment.get(name)
    if value is None:
        return None
    if not value:
        raise ArgumentError(f"{name}='' is not valid; use the path of a folder.")
    try:
        return os.path.abspath(os.path.expanduser(value))
    except OSError as error:
        raise ArgumentError(
            f"{name}={value!r} is not valid: it is relative, and there is no current folder ({error.strerror}); use an "
            "absolute path."
        ) from error


def _threads(environment: Mapping[str, str]) -> int:
    own = _number(environment, "TRACEJIT_THREADS")
    if own is not None:
        return own
    # OMP_NUM_THREADS may hold values that only other libraries understand, such as a list for nested regions.
    value = environment.get("OMP_NUM_THREADS", "")
    if value.isdecimal() and int(value) >= 1:
        return int(value)
    return cpus()


def _choice(environment: Mapping[str, str], name: str, valid: tuple[str, ...], default: str) -> str:
    value = environment.get(name, default)
    if value not in valid:
        folder = " TRACEJIT_CACHE_DIR is the folder." if name == "TRACEJIT_CACHE" and os.sep in value else ""
        raise ArgumentError(
            f"{name}={value!r} is not valid; use one of {', '.join(map(repr, valid))}.{folder}"
        )
    return value


_COMMANDS = ("tracejit", "tracejit.exe", "tracejit-script.py")  # the last two on Windows


def _is_command() -> bool:
    """Return whether the process is the command `tracejit`, or `python -m tracejit`.

    The package is imported before anything of the command runs, so that the command cannot catch its errors.
    """
    program = next(iter(sys.argv), "")
    if program == "-m":  # while Python looks for the module
        return sys.orig_argv[sys.orig_argv.index("-m") + 1 :][:1] == ["tracejit"]
    return os.path.basename(program).lower() in _COMMANDS


try:
    settings = from_environment(os.environ)
except ArgumentError as error:
    if not _is_command():
        raise
    sys.stderr.write(f"tracejit: {error}\n")
    sys.exit(2)  # wrong usage, as for arguments
