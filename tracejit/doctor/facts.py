# SPDX-License-Identifier: BSD-3-Clause
"""Facts: versions, the machine, BLAS, CUDA, the cache folder, and the settings in effect with where they come from."""

import ctypes
import dataclasses
import importlib.metadata
import os
import platform
import sys
import tracemalloc
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from tracejit import config
from tracejit.cache import inspect
from tracejit.codegen.target import vector_bytes
from tracejit.doctor.system import System
from tracejit.errors import CacheError
from tracejit.kernels.executor.state import HAS_CONTROL_REGISTER

PACKAGES = ("tracejit", "numpy", "scipy", "numba", "llvmlite")
VARIABLES = {  # of the environment, that a setting comes from, the first of them that is set
    "backend": ("TRACEJIT_BACKEND",),
    "verify": ("TRACEJIT_VERIFY",),
    "flush_denormals": ("TRACEJIT_FLUSH_DENORMALS",),
    "threads": ("TRACEJIT_THREADS", "OMP_NUM_THREADS"),
    "cache": ("TRACEJIT_CACHE",),
    "cache_dir": ("TRACEJIT_CACHE_DIR",),
    "cache_mib": ("TRACEJIT_CACHE_MIB",),
    "log": ("TRACEJIT_LOG",),
}
_FEATURES = (  # of a CPU, that kernels gain from
    "sse4.2", "avx", "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512vl", "avx512bf16", "avx512fp16", "amx-tile",
    "neon", "sve", "sve2",
)  # fmt: skip
_BLAS = ("openblas", "mkl_rt", "blis", "libblas")
_MOST_CHECKED = 256 << 20  # bytes of entries, whose hashes take a second
_LAYERS = {0: "one thread", 1: "threads that spin", 2: "OpenMP"}  # what openblas_get_parallel says


@dataclass(frozen=True, slots=True)
class Interpreter:
    """Python: its version, and what makes it slow: a debug build, its developer mode, who watches each line."""

    version: str
    debug_build: bool
    developer_mode: bool
    watched_by: list[str]


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine.

    processor       its name, and that which compilers know it by
    features        those of the CPU that kernels gain from
    vector_bits     of the vectors that kernels are written with
    cpus, allowed   how many CPUs there are, and on how many this process may run
    quota           how many CPUs' time the process gets in its group (cgroup), None for no limit
    load            processes that wanted to run in the last minute, on average
    governor        what decides the CPU's clock
    flushes         whether programs can flush denormal numbers here
    """

    system: str
    processor: str
    compiler_name: str | None
    features: list[str]
    vector_bits: int
    cpus: int
    allowed: int
    quota: float | None
    load: float | None
    governor: str | None
    flushes: bool


@dataclass(frozen=True, slots=True)
class Blas:
    """The BLAS of a package; `layer` is how its threads wait."""

    package: str
    name: str
    version: str
    library: str | None
    threads: int | None
    layer: str | None


@dataclass(frozen=True, slots=True)
class Cuda:
    """NVIDIA's driver and devices."""

    driver: str | None
    devices: list[str]


@dataclass(frozen=True, slots=True)
class CacheFolder:
    """The cache folder, and the disk that it is on.

    exists          whether it has been made
    owner, mode     of the folder
    free_bytes      on the disk
    writable        by this process: the folder, or the first one above it that exists
    damaged         why entries are not as they should be; None if there were too many to look at
    """

    info: inspect.Info
    exists: bool
    owner: str | None
    mode: str | None
    filesystem: str | None
    free_bytes: int | None
    writable: bool
    damaged: list[str] | None


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting in effect, and the variable that it comes from, "default", or "the program" if that set it."""

    name: str
    value: Any
    source: str


@dataclass(frozen=True, slots=True)
class Facts:
    """All that was gathered."""

    versions: dict[str, str | None]
    python: Interpreter
    machine: Machine
    blas: list[Blas]
    cuda: Cuda
    cache: CacheFolder
    settings: list[Setting]
    environment: dict[str, str]

    def setting(self, name: str) -> Any:
        """Return the value of a setting."""
        return next(setting.value for setting in self.settings if setting.name == name)

    def source(self, name: str) -> str:
        """Return where a setting comes from."""
        return next(setting.source for setting in self.settings if setting.name == name)


def gather(system: System) -> Facts:
    """Return all facts."""
    return Facts(
        versions={name: version_of(name) for name in PACKAGES},
        python=interpreter(),
        machine=machine(system),
        blas=blas(system),
        cuda=cuda(system),
        cache=cache_folder(system),
        settings=settings(system),
        environment={
            name: value
            for name, value in sorted(system.environment.items())
            if name.startswith(("NUMBA_", "OMP_", "OPENBLAS_", "MKL_", "BLIS_", "TRACEJIT_"))
        },
    )


def version_of(package: str) -> str | None:
    """Return the version of a package, None if it is not installed."""
    with suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(package)
    return None


def interpreter() -> Interpreter:
    """Return what Python is and who watches it."""
    watching = []
    for what, found in (("sys.settrace", sys.gettrace()), ("sys.setprofile", sys.getprofile())):
        if found is not None:
            watching.append(f"{what} ({getattr(type(found), '__module__', '?')}.{type(found).__name__})")
    monitoring = getattr(sys, "monitoring", None)
    if monitoring is not None:
        watching += [f"sys.monitoring ({name})" for name in map(monitoring.get_tool, range(6)) if name]
    if tracemalloc.is_tracing():
        watching.append("tracemalloc")
    return Interpreter(
        f"{platform.python_version()} ({platform.python_implementation()})",
        hasattr(sys, "gettotalrefcount"), sys.flags.dev_mode, watching,
    )  # fmt: skip


def machine(system: System) -> Machine:
    """Return what the machine is and gives to this process."""
    name, features = None, ""
    with suppress(ImportError):
        from tracejit.compile import objects  # imports llvmlite

        _, name, features = objects.host()
    known = {feature[1:] for feature in features.split(",") if feature.startswith("+")}
    governor = system.read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    return Machine(
        system=f"{platform.system()} {platform.release()}, {platform.machine()}",
        processor=_processor(system),
        compiler_name=name,
        features=[feature for feature in _FEATURES if feature in known],
        vector_bits=8 * vector_bytes(),
        cpus=system.cpus(),
        allowed=system.allowed(),
        quota=quota(system),
        load=system.load(),
        governor=governor and governor.strip(),
        flushes=HAS_CONTROL_REGISTER,
    )


def _processor(system: System) -> str:
    for line in (system.read("/proc/cpuinfo") or "").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            return value.strip()
    return platform.processor() or platform.machine()


def quota(system: System) -> float | None:
    """Return how many CPUs' time the groups (cgroups) of this process allow, None for no limit."""
    found: list[float] = []
    for line in (system.read("/proc/self/cgroup") or "").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        names: tuple[str, ...]
        if controllers == "":  # version 2
            root, names = "/sys/fs/cgroup", ("cpu.max",)
        elif "cpu" in controllers.split(","):
            root, names = f"/sys/fs/cgroup/{controllers}", ("cpu.cfs_quota_us", "cpu.cfs_period_us")
        else:
            continue
        parts = [part for part in path.split("/") if part]
        for depth in range(len(parts) + 1):  # a group is limited by those around it, too
            folder = "/".join([root, *parts[:depth]])
            words = " ".join(system.read(f"{folder}/{name}") or "" for name in names).split()
            if len(words) == 2 and all(word.isdecimal() for word in words) and int(words[1]):
                found.append(int(words[0]) / int(words[1]))
    return min(found, default=None)


def blas(system: System) -> list[Blas]:
    """Return the BLAS of NumPy, and of SciPy, which large products use."""
    found = [("NumPy", np)]
    with suppress(ImportError):
        import scipy

        from tracejit.runtime.cpu import _cython_blas

        _cython_blas()  # so that its library is loaded
        found.append(("SciPy", scipy))
    libraries = _libraries(system)
    made = []
    for package, module in found:
        described = module.show_config(mode="dicts").get("Build Dependencies", {}).get("blas", {})
        # Wheels bring their own; other installations share one.
        own = [path for path in libraries if f"/{package.lower()}" in path] or libraries
        library = own[0] if own else None
        threads, layer = _threads_of(library)
        made.append(
            Blas(package, described.get("name", "?"), described.get("version", "?"), library, threads, layer)
        )
    return made


def _libraries(system: System) -> list[str]:
    """Return the BLAS libraries that this process has loaded."""
    paths = [line.split(maxsplit=5)[-1] for line in (system.read("/proc/self/maps") or "").splitlines()]
    names = {path: os.path.basename(path) for path in paths if ".so" in path}
    return sorted(
        path for path, name in names.items() if any(part in name for part in _BLAS) and "cython" not in name
    )


def _threads_of(library: str | None) -> tuple[int | None, str | None]:
    """Return how many threads a BLAS library uses, and how they wait."""
    if library is None:
        return None, None
    with suppress(OSError):
        loaded = ctypes.CDLL(library)
        threads = _asked(
            loaded, "openblas_get_num_threads", "MKL_Get_Max_Threads", "bli_thread_get_num_threads"
        )
        parallel = _asked(loaded, "openblas_get_parallel")
        return threads, "OpenMP" if "mkl" in library else None if parallel is None else _LAYERS.get(parallel)
    return None, None


def _asked(library: Any, *names: str) -> int | None:
    """Call the first of these functions that a library has, whatever was put around its name."""
    for name in names:
        for prefix in ("", "scipy_"):
            for suffix in ("", "64_", "_64"):
                function = getattr(library, f"{prefix}{name}{suffix}", None)
                if function is not None:
                    return int(function())
    return None


def cuda(system: System) -> Cuda:
    """Return NVIDIA's driver and devices, from files that the driver has."""
    text = system.read("/proc/driver/nvidia/version") or ""
    words = text.split("Module", 1)[-1].split() if "Module" in text else []
    driver = next((word for word in words if word[:1].isdigit()), None)
    devices = []
    for name in system.names("/proc/driver/nvidia/gpus"):
        lines = (system.read(f"/proc/driver/nvidia/gpus/{name}/information") or "").splitlines()
        devices += [line.partition(":")[2].strip() for line in lines if line.startswith("Model:")]
    return Cuda(driver, devices)


def cache_folder(system: System) -> CacheFolder:
    """Return what the cache folder is and holds, and what disk it is on."""
    info = inspect.info()
    status = system.owner(info.folder)
    existing = info.folder
    while system.owner(existing) is None and os.path.dirname(existing) != existing:
        existing = os.path.dirname(existing)
    return CacheFolder(
        info,
        status is not None,
        status and status[0],
        status and f"{status[1]:o}",
        filesystem(system, existing),
        system.free_bytes(existing),
        system.writable(existing),
        None if info.kernel_bytes > _MOST_CHECKED else _damaged(),
    )


def _damaged() -> list[str] | None:
    with suppress(CacheError):  # of a folder that is not used all is said
        return [reason for _, reason in inspect.verify().bad]
    return None


def filesystem(system: System, path: str) -> str | None:
    """Return the kind of file system that a path is on."""
    found, longest = None, -1
    path = os.path.realpath(path)
    for line in (system.read("/proc/self/mounts") or "").splitlines():
        fields = line.split()
        if len(fields) < 3:
            continue
        point = fields[1].replace("\\040", " ")
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= longest:
            found, longest = fields[2], len(point)
    return found


def settings(system: System) -> list[Setting]:
    """Return the settings in effect and where each comes from."""
    environment = {name: value for name, value in system.environment.items() if name in _KNOWN}
    if not environment.get("OMP_NUM_THREADS", "").isdecimal():
        environment.pop("OMP_NUM_THREADS", None)  # a list for nested regions says nothing to us
    given = config.from_environment(environment)
    found = []
    for each in dataclasses.fields(config.Settings):
        name, value = each.name, getattr(config.settings, each.name)
        source = next((variable for variable in VARIABLES[name] if variable in environment), "default")
        found.append(Setting(name, value, source if value == getattr(given, name) else "the program"))
    return found


_KNOWN = {variable for variables in VARIABLES.values() for variable in variables}
