# SPDX-License-Identifier: BSD-3-Clause
"""Facts about this process and its machine: versions, CPU, BLAS, CUDA, the cache folder and the settings."""

import dataclasses
import importlib.metadata
import os
import platform
import re
import sys
import tracemalloc
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracejit import config
from tracejit.cache import inspect
from tracejit.codegen.target import vector_bytes
from tracejit.errors import DeviceError
from tracejit.kernels.executor.state import HAS_CONTROL_REGISTER, HAS_THREADS
from tracejit.util.text import size

PACKAGES = ("tracejit", "numpy", "scipy", "numba", "llvmlite")
_FEATURES = (  # CPU features that kernels gain from
    "sse4.2", "avx", "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512vl", "avx512bf16", "avx512fp16", "amx-tile",
    "neon", "sve", "sve2",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Facts:
    """All facts.

    versions        package -> version, None if it is not installed; and Python's own
    watched_by      debuggers, profilers and tracers that see each line or call of Python
    compiler_name   the CPU's name in LLVM, None without llvmlite
    features        the CPU features that kernels gain from
    vector_bits     the width of the vectors in kernels
    cpus, allowed   CPUs of the machine, and those that this process may run on
    load            processes that wanted to run, averaged over the last minute
    flushes         whether programs can flush denormal numbers on this kind of CPU
    has_threads     whether programs can run on several threads on this system
    blas            the BLAS libraries in this process, as threadpoolctl describes them; None without threadpoolctl
    cuda_driver     the version of NVIDIA's driver, None without one
    gpu             the GPU that programs can run on, None without one
    gpu_problem     why there is none, None if there is one
    cache           the cache folder
    cache_writable  whether this process may write to the cache folder, or create it
    settings        setting -> value in effect
    sources         setting -> the variable that it comes from, "default", or "the program" if the program set it
    environment     the environment variables of tracejit, Numba, OpenMP and BLAS libraries
    """

    versions: dict[str, str | None]
    watched_by: list[str]
    system: str
    processor: str
    compiler_name: str | None
    features: list[str]
    vector_bits: int
    cpus: int
    allowed: int
    load: float | None
    flushes: bool
    has_threads: bool
    blas: list[dict[str, Any]] | None
    cuda_driver: str | None
    cache: inspect.Info
    cache_writable: bool
    settings: dict[str, Any]
    sources: dict[str, str]
    environment: dict[str, str]
    gpu: str | None = None
    gpu_problem: str | None = None


def gather() -> Facts:
    """Return the facts about this process and its machine."""
    compiler_name, features = compiler_target()
    info = inspect.info()
    folder = next(path for path in (Path(info.folder), *Path(info.folder).parents) if path.exists())
    cpus = os.cpu_count() or 1
    values, sources = settings(os.environ)
    device, problem = gpu()
    return Facts(
        gpu=device,
        gpu_problem=problem,
        versions={name: version_of(name) for name in PACKAGES}
        | {"Python": f"{platform.python_version()} ({platform.python_implementation()})"},
        watched_by=watchers(),
        system=f"{platform.system()} {platform.release()}, {platform.machine()}",
        processor=_first(r"(?m)^model name\s*: (.*)$", "/proc/cpuinfo")
        or platform.processor()
        or platform.machine(),
        compiler_name=compiler_name,
        features=features,
        vector_bits=8 * vector_bytes(),
        cpus=cpus,
        allowed=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else cpus,
        load=round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        flushes=HAS_CONTROL_REGISTER,
        has_threads=HAS_THREADS,
        blas=blas(),
        cuda_driver=cuda_driver(),
        cache=info,
        cache_writable=os.access(folder, os.W_OK | os.X_OK),
        settings=values,
        sources=sources,
        environment={
            name: value
            for name, value in sorted(os.environ.items())
            if name.startswith(("NUMBA_", "OMP_", "OPENBLAS_", "MKL_", "BLIS_", "TRACEJIT_"))
        },
    )


def version_of(package: str) -> str | None:
    """Return the version of a package, None if it is not installed."""
    with suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(package)
    return None


def watchers() -> list[str]:
    """Return the names of the debuggers, profilers and tracers of this process."""
    names = [
        name for name in ("settrace", "setprofile") if getattr(sys, name.replace("set", "get"))() is not None
    ]
    monitoring = getattr(sys, "monitoring", None)
    if monitoring is not None:
        names += [f"monitoring ({tool})" for tool in map(monitoring.get_tool, range(6)) if tool]
    return [f"sys.{name}" for name in names] + ["tracemalloc"] * tracemalloc.is_tracing()


def compiler_target() -> tuple[str | None, list[str]]:
    """Return LLVM's name of the CPU and the features that kernels gain from; None and none without llvmlite."""
    try:
        from tracejit.compile import objects  # imports llvmlite
    except ImportError:
        return None, []
    _, name, features = objects.host()
    enabled = features.split(",")
    return name, [feature for feature in _FEATURES if f"+{feature}" in enabled]


def blas() -> list[dict[str, Any]] | None:
    """Return the BLAS libraries of NumPy and of SciPy, which large products use; None without threadpoolctl."""
    try:
        import threadpoolctl
    except ImportError:
        return None
    with suppress(ImportError):
        from tracejit.runtime.table import _cython_blas

        _cython_blas()  # loads SciPy's library
    return [library for library in threadpoolctl.threadpool_info() if library["user_api"] == "blas"]


def cuda_driver(path: str = "/proc/driver/nvidia/version") -> str | None:
    """Return the version of NVIDIA's driver, None without one."""
    return _first(r"Module .*?\s(\d[\d.]+)", path)


def gpu() -> tuple[str | None, str | None]:
    """Return the GPU that programs can run on, or why there is none."""
    try:
        return describe_device(), None
    except DeviceError as error:
        return None, str(error)


def describe_device() -> str:
    """Return the name, the memory and the capability of the GPU of this process.

    Raises:
        DeviceError: if there is no GPU or no driver.
    """
    from tracejit.runtime.cuda.driver import driver

    on = driver()
    return f"{on.name}, {size(on.total_bytes)}, capability {on.capability.major}.{on.capability.minor}"


def settings(environment: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the settings in effect by name, and where each of them comes from."""
    read = config.from_environment(environment)
    values, sources = dataclasses.asdict(config.settings), {}
    for name, value in values.items():
        variable = f"TRACEJIT_{name.upper()}"
        # A list of numbers, for nested regions, is not read.
        if (
            name == "threads"
            and variable not in environment
            and environment.get("OMP_NUM_THREADS", "").isdecimal()
        ):
            variable = "OMP_NUM_THREADS"
        source = variable if variable in environment else "default"
        sources[name] = source if value == getattr(read, name) else "the program"
    return values, sources


def _first(pattern: str, path: str) -> str | None:
    """Return what the group of a pattern matches first in a file, None if there is none."""
    with suppress(OSError):
        match = re.search(pattern, Path(path).read_text(errors="replace"))
        return match[1].strip() if match else None
    return None
